"""Run blocks of Python, given as JSON on stdin, in one namespace; write as JSON what each printed and drew."""

import contextlib
import hashlib
import io
import json
import sys
import warnings


def run(code, number, namespace):
    """Run one block."""
    exec(compile(code, f"<block {number}>", "exec"), namespace)


def figures(folder, code):
    """Save the open figures and return their names."""
    if "matplotlib" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    names = []
    for number in plt.get_fignums():
        names.append(f"{hashlib.sha256(code.encode()).hexdigest()[:12]}-{number}.png")
        plt.figure(number).savefig(f"{folder}/{names[-1]}", dpi=110, bbox_inches="tight")
    plt.close("all")
    return names


def show_warning(message, category, filename, lineno, file=None, line=None):
    """Print a warning as part of the output of its block."""
    print(f"{category.__name__}: {message}")


def main():
    warnings.showwarning = show_warning
    order = json.load(sys.stdin)
    namespace, results = {"__name__": "__main__"}, []
    for number, code in enumerate(order["codes"], 1):
        printed = io.StringIO()
        if code is not None:
            with contextlib.redirect_stdout(printed):
                run(code, number, namespace)
        results.append({"printed": printed.getvalue(), "figures": figures(order["figures"], code or "")})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
