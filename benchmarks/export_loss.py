"""Frame errors of networks on the valid part of AN4: in Python, and exported to C in floats and whole numbers.

    python benchmarks/export_loss.py --data an4_states.npz

One layer of 300 units learns for two epochs, and a deep network of 128 units with its defaults: the first is not a good
network, but its weights are learned. Their answers to the valid part, as C with float32, int16 and int8, are compared
with their own. Needs gcc. The test part is not read.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import an4
import results
from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.export import plan_of
from echolearn.export.c.header import c_header

NETWORKS = {
    "one layer of 300 units": lambda: ESNClassifier(300, epochs=2, learning={"refine_epochs": 0}),
    "six layers of 128 units": lambda: DeepESNClassifier(128, 6),
}
PROGRAM = """
#include <stdio.h>
#include "esn.h"
int main(void)
{
    static esn_state state;
    static float x[esn_inputs], out[esn_outputs];
    int frames, t;
    while (fread(&frames, sizeof frames, 1, stdin) == 1) {
        esn_reset(&state);
        for (t = 0; t < frames; t++) {
            if (fread(x, sizeof(float), esn_inputs, stdin) != esn_inputs)
                return 1;
            esn_step(&state, x, out);
            fwrite(out, sizeof(float), esn_outputs, stdout);
        }
    }
    return 0;
}
"""


def in_c(header, X):
    """Return the answers to all frames of all sequences."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "esn.h").write_text(header)
        (place / "p.c").write_text(PROGRAM)
        subprocess.run(["gcc", "-std=c99", "-O3", str(place / "p.c"), "-o", str(place / "p"), "-lm"], check=True)
        given = b"".join(np.int32(len(x)).tobytes() + x.astype(np.float32).tobytes() for x in X)
        done = subprocess.run([str(place / "p")], input=given, capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.float32).reshape(sum(map(len, X)), -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="path of an4_states.npz")
    data = an4.load_an4(parser.parse_args().data)
    X, y = data["valid"]
    truth = np.concatenate(y)
    rows = []
    for name, make in NETWORKS.items():
        esn = make().fit(*data["train"])
        own = np.concatenate(esn.predict_proba(X))
        for way in ("Python", "float32", "int16", "int8"):
            header = "" if way == "Python" else c_header(plan_of(esn), numbers=way)
            P = own if way == "Python" else in_c(header, X)
            rows.append(
                {
                    "network": name,
                    "numbers": way,
                    "valid_error": 100 * float((esn.classes_[P.argmax(axis=1)] != truth).mean()),
                    "changed": 100 * float((P.argmax(axis=1) != own.argmax(axis=1)).mean()),
                    "constants": int(header.split("constants: ")[1].split()[0]) if header else None,
                }
            )
            print(rows[-1], flush=True)
    results.write("export_loss", rows, frames=len(truth))


if __name__ == "__main__":
    main()
