"""Output for people: lines and bars in a notebook, a terminal or a log, and figures that show inline."""
