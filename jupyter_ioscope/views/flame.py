"""Flame graphs: stack samples become trees, and trees become the columns that the page draws.

A tree counts samples, so all sums are exact integers until the last division. It grows widest
frame first and stops after `GROWN` frames: its cost follows what can be drawn. A smaller graph is
the same tree cut earlier.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from jupyter_ioscope.errors import IoscopeError
from jupyter_ioscope.model.readings import Stack, Stacks
from jupyter_ioscope.views.frames import FrameText, frame_texts, root_text
from jupyter_ioscope.views.shapes import IFlame

WORKERS_DRAWN = 8  # one by one; the rest is merged into one graph that says how many it holds
GROWN = 400  # frames of one graph: more cannot be told apart at the width of a page
_DIGITS = 4  # of x: a tenth of a pixel, and every digit is paid for some thousand times


class Node:
    """One frame in its place: the samples that passed through it, and what it called.

    `rank` is its place among all frames of the tree by width, -1 where the tree stopped growing.
    """

    __slots__ = ("children", "count", "depth", "function", "rank", "stacks")

    def __init__(self, function: int, depth: int, stacks: list[Stack]) -> None:
        self.function = function
        self.depth = depth
        self.stacks = stacks
        self.count = sum(stack.count for stack in stacks)
        self.rank = -1
        self.children: list[Node] = []


class Timed(NamedTuple):
    """What of some functions' count (outermost first) lies in which stretch of the run."""

    functions: tuple[int, ...]
    weights: Mapping[int, float]


@dataclass(frozen=True)
class Tree:
    """All samples of some threads. `texts` is indexed by `Node.function`; the root's is -1.

    With a `note`, what is counted is no samples: the note says what the root stands for. `timed`
    says when: functions from the outside in, and what of the count lies in which stretch of the run
    (`spans.STRETCHES` of them); empty where samples carry no times.
    """

    key: str
    label: str
    root: Node = field(repr=False)
    texts: Sequence[FrameText] = field(repr=False)
    note: str = ""
    timed: Sequence[Timed] = field(default=(), repr=False)


def trees(stacks: Stacks | None, workers_drawn: int = WORKERS_DRAWN) -> list[Tree]:
    """Workers merged, each worker (at most `workers_drawn`), consumer, then helper threads."""
    if stacks is None:
        return []
    functions, texts = frame_texts(stacks.frames)
    groups = [*_workers(stacks.stacks, workers_drawn), *_others(stacks.stacks)]
    grown = [(key, label, grow(group, functions)) for key, label, group in groups]
    return [Tree(key, label, root, texts) for key, label, root in grown if root.count]


Group = tuple[str, str, list[Stack]]


def _workers(stacks: Sequence[Stack], drawn: int) -> Iterator[Group]:
    by_worker: dict[int, list[Stack]] = {}
    for stack in stacks:
        if stack.role == "worker":
            by_worker.setdefault(stack.worker, []).append(stack)
    workers = sorted(by_worker)
    if len(workers) < 2:
        for worker in workers:
            yield "workers", _worker_label(worker), by_worker[worker]
        return
    yield "workers", "workers merged", [stack for one in workers for stack in by_worker[one]]
    if len(workers) <= drawn + 1:  # merging a single worker would hide it and save nothing
        drawn = len(workers)
    for worker in workers[:drawn]:
        yield f"worker-{worker}", _worker_label(worker), by_worker[worker]
    if rest := workers[drawn:]:
        merged = [stack for one in rest for stack in by_worker[one]]
        yield "workers-rest", f"{len(rest)} more workers", merged


def _worker_label(worker: int) -> str:
    return f"worker {worker}" if worker >= 0 else "workers without a number"


def _others(stacks: Sequence[Stack]) -> Iterator[Group]:
    for key, label, roles in (
        ("consumer", "consumer", ("consumer",)),
        ("hand_over", "hand-over threads", ("feeder", "pin_memory")),
        ("other", "other threads", ("other",)),
    ):
        yield key, label, [stack for stack in stacks if stack.role in roles]


def grow(stacks: Iterable[Stack], functions: Sequence[int]) -> Node:
    """The tree of the widest frames. A frame is never narrower than what it called, so callers
    come before callees, and the first n frames of the tree are a tree for every n."""
    root = Node(-1, 0, [stack for stack in stacks if stack.count > 0])
    order = 0  # first come first among equals
    heap = [(-root.count, order, root)]
    for rank in range(GROWN):
        if not heap:
            break
        node = heapq.heappop(heap)[2]
        node.rank = rank
        node.children = _called(node, functions)
        for child in node.children:
            order += 1
            heapq.heappush(heap, (-child.count, order, child))
    return root


def _called(node: Node, functions: Sequence[int]) -> list[Node]:
    depth, known = node.depth, len(functions)
    groups: dict[int, list[Stack]] = {}
    for stack in node.stacks:
        frames = stack.frames
        if len(frames) > depth and 0 <= frames[depth] < known:
            groups.setdefault(functions[frames[depth]], []).append(stack)
    node.stacks = []  # its children hold them now
    found = [Node(function, depth + 1, group) for function, group in groups.items()]
    return sorted(found, key=lambda child: (-child.count, child.function))


def check_tree(root: Node) -> None:
    """Every frame holds at least as many samples as the frames it called, together.

    Raises:
        IoscopeError: the sums do not hold.
    """
    pending = [root]
    while pending:
        node = pending.pop()
        called = sum(child.count for child in node.children)
        if called > node.count:
            raise IoscopeError(f"a frame of {node.count} samples called frames of {called}")
        pending.extend(node.children)


def columns(tree: Tree, max_frames: int = GROWN) -> IFlame:
    """The widest `max_frames` frames of a tree, as columns sorted by (depth, x0).

    The samples that go on into narrower frames are counted in the frames that called them; the text
    of the root says how many.
    """
    rows: list[tuple[Node, int]] = []
    missing = 0
    level = [(tree.root, 0)]
    while level:
        rows.extend(level)
        below: list[tuple[Node, int]] = []
        for node, start in level:
            for child in node.children:  # widest first
                if 0 <= child.rank < max_frames:
                    below.append((child, start))
                else:
                    missing += child.count
                start += child.count
        level = below
    flame = _flame(tree, rows, missing)
    if tree.timed:
        flame["over"] = _over(tree, rows, max_frames)
    return flame


def _over(tree: Tree, rows: Sequence[tuple[Node, int]], max_frames: int) -> list[str]:
    """Each frame's own weights in hundred-thousandths of the whole. What goes on into frames that
    are not drawn counts in the last one that is."""
    found: dict[int, dict[int, float]] = {}
    for functions, weights in tree.timed:
        node = tree.root
        for function in functions:
            below = (one for one in node.children if one.function == function)
            child = next(below, None)
            if child is None or not 0 <= child.rank < max_frames:
                break
            node = child
        own = found.setdefault(id(node), {})
        for stretch, weight in weights.items():
            own[stretch] = own.get(stretch, 0.0) + weight
    scale = 1e5 / (tree.root.count or 1)
    return [_sparse(found.get(id(node), {}), scale) for node, _ in rows]


def _sparse(weights: Mapping[int, float], scale: float) -> str:
    whole = ((stretch, round(weight * scale)) for stretch, weight in sorted(weights.items()))
    return " ".join(f"{stretch}:{weight}" for stretch, weight in whole if weight)


def _flame(tree: Tree, rows: list[tuple[Node, int]], missing: int) -> IFlame:
    total = tree.root.count or 1
    place: dict[int, int] = {}
    flame = IFlame(
        key=tree.key,
        label=tree.label,
        samples=0 if tree.note else tree.root.count,
        names=[],
        details=[],
        kinds=[],
        name=[],
        depth=[],
        x0=[],
        x1=[],
    )
    for node, start in rows:
        if node.function not in place:
            place[node.function] = len(flame["names"])
            root = root_text(tree.label, tree.root.count, missing, tree.note)
            text = root if node.function < 0 else tree.texts[node.function]
            flame["names"].append(text.name)
            flame["details"].append(text.detail)
            flame["kinds"].append(text.kind)
        flame["name"].append(place[node.function])
        flame["depth"].append(node.depth)
        flame["x0"].append(round(start / total, _DIGITS))
        flame["x1"].append(round((start + node.count) / total, _DIGITS))
    return flame


def check_columns(flame: IFlame) -> None:
    """Columns are equally long, sorted by (depth, x0), and every frame lies within one below it.

    Raises:
        IoscopeError: they do not.
    """
    rows = list(zip(flame["depth"], flame["x0"], flame["x1"], flame["name"], strict=True))
    ordered = all(one[:2] <= other[:2] for one, other in pairwise(rows))
    if not ordered or any(not 0 <= x0 <= x1 <= 1 for _, x0, x1, _ in rows):
        raise IoscopeError(f"flame graph {flame['key']}: frames are not in order")
    by_depth: dict[int, list[tuple[float, float]]] = {}
    for depth, x0, x1, _ in rows:
        by_depth.setdefault(depth, []).append((x0, x1))
    for depth, spans in by_depth.items():
        callers = by_depth.get(depth - 1, [])
        inside = all(any(a <= x0 and x1 <= b for a, b in callers) for x0, x1 in spans)
        apart = all(left[1] <= right[0] for left, right in pairwise(spans))
        if not apart or (depth and not inside):
            raise IoscopeError(f"flame graph {flame['key']}: a frame leaves its caller")
