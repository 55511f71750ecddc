"""What people see while they work: lines and bars in a notebook, a terminal or a log, and figures that show inline."""
