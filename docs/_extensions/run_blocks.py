"""Run blocks of Python, given as JSON on stdin, in one namespace; write as JSON what each printed and drew."""

import ast
import contextlib
import hashlib
import io
import json
import sys


def run(code, number, namespace):
    """Run one block. Its last line, if it is an expression, is shown as a notebook does."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    name = f"<block {number}>"
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        if value is not None and "matplotlib" not in type(value).__module__:
            print(value if hasattr(value, "_repr_html_") else repr(value))


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


def main():
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
