"""Run blocks of Python, given as JSON on stdin, in one namespace; write as JSON what each printed and drew."""

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import warnings


def run_commands(text):
    """Run the lines that begin with $ in one shell, and print what they print; other lines continue them."""
    script = "\n".join(re.findall(r"^\$ (.+(?:\n(?!\$).+)*)", text, re.M))
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=False, env=environment())
    if done.returncode:
        raise RuntimeError(f"{script}\n{done.stdout}{done.stderr}")
    print(done.stdout, end="")  # progress goes to stderr


def environment():
    """Return the variables of a shell in which `echolearn` is the one of this Python."""
    return {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "COLUMNS": "100"}


def run(code, number, namespace):
    """Run one block, and return the value of its last line if that is an expression."""
    if code.startswith("$ "):
        return run_commands(code)
    body, name = ast.parse(code).body, f"<block {number}>"
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), namespace)


def save_figures(folder, code, value):
    """Save the figures that are open, and the value of a block if it is one; return their names."""
    if "matplotlib" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    drawn = [plt.figure(number) for number in plt.get_fignums()]
    if hasattr(value, "savefig") and value not in drawn:
        drawn.append(value)
    names = [f"{hashlib.sha256(code.encode()).hexdigest()[:12]}-{number}.png" for number in range(len(drawn))]
    for figure, name in zip(drawn, names, strict=True):
        figure.savefig(f"{folder}/{name}", dpi=110, bbox_inches="tight")
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
        printed, value = io.StringIO(), None
        if code is not None:
            with contextlib.redirect_stdout(printed):
                value = run(code, number, namespace)
        results.append({"printed": printed.getvalue(), "figures": save_figures(order["figures"], code or "", value)})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
