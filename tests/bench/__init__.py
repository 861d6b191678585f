"""What ioscope costs and how often it errs, measured: `make bench`. Not part of `make test`."""
