"""What is noticed beside batches and states. One file an observer, found by its constant.

OBSERVER = an object with the two methods of `_observer.Observer`
"""
