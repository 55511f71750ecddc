"""Builds an4_states.npz, the phone states of AN4, from the corpus's public distribution, and checks it by digest.

    python benchmarks/build_an4.py --features an4/feat --labels glob_0000.mlf --out an4_states.npz
    python benchmarks/build_an4.py --check an4_states.npz

Nothing is downloaded. What is needed, and where it is:

1. The feature files of the AN4 database of Carnegie Mellon University (http://www.speech.cs.cmu.edu/databases/an4/;
   free for any use under the licence in it): 13 mel-frequency cepstra per frame, 100 frames per second, one file
   UTTERANCE.mfc for each of the 948 utterances of the training set (feat/an4_clstk/SPEAKER/an251-fash-b.mfc), in the
   format of Sphinx or of HTK. --features is the folder that they lie below.
2. The state alignment of the same utterances that CNTK publishes with its AN4 example (MIT licence):
   https://github.com/microsoft/CNTK, Examples/Speech/AN4/Data/glob_0000.mlf, an HTK master label file. The features of
   that example (000000000.chunk) have 33 columns and are not needed.

The division into train, valid and test is by speaker and our own (SPEAKERS below); AN4's own test set has no alignment
and is not used.
"""

import argparse
import hashlib
import io
import re
import struct
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from echolearn.exceptions import CorpusError, Problem
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech import read_mlf
from echolearn.speech._features import CEPSTRA, FRAME_SECONDS
from echolearn.speech._sources.feature_file import ARRAYS, read_feature_file
from echolearn.speech._text import raise_any
from echolearn.speech.formats._results import UNITS_PER_SECOND

# The speakers that are held out; the other 55 are the training part.
SPEAKERS = {
    "valid": ["fejs", "fplp", "mcrt", "mgah", "mmap", "msct"],
    "test": ["fash", "fjdn", "fmjc", "ftal", "mcel", "mdcs2", "mema", "mjdr", "mkem", "mmsh", "mrjc2", "mskh", "mtxj"],
}
# sha256 of each array of the file that the figures of this repository were measured on; see `digest`.
DIGESTS = {
    "features": "627f8c4c69dbafda73caa56d3d0d7b6ab2dcf7fba15cf804c0d2149214fd1d17",
    "labels": "53f48f99e9bdb0f9a5dc729efb3a350ccdef6363ba5195a70e9096813d1b601f",
    "lengths": "2415875fbf103ad08e92f5f9e7d1ecd44054351195e3707c2c4c4157fbeb1b6d",
    "utterances": "3eed5ae021deaa2335fe944170f2bc30f7d50df794c08d6a8f083df1f68a55f4",
    "speakers": "c1e860d87841461a79557273c1b4c7471276ac71e7651f3362cb67244b5c6ca8",
    "split": "08051fa1c0a7e544a1d938b2de7b77c74d658f8830521d59c8a345cda8b553cf",
    "state_names": "14cd9d7d59a017a1b38ae0f5151763ee3f2b4756e3cabf3181b23d77fd82de65",
}
NUMBERS = {"features": "<f4", "labels": "<i2", "lengths": "<i4"}
MEAN_ENERGY = 9.036  # mean of the first cepstrum in that file: another front end has another one
SURPLUS = 3  # frames that a feature file may have after the last label: front ends differ in how they end
HTK_PACKED = 0o2000 | 0o10000  # qualifiers _C and _K of HTK: compressed, and with a checksum


def read_cepstra(path):
    """Return the frames of a feature file (frames, 13), float32.

    Sphinx: the number of values as an int32, then float32, in either byte order. HTK: a header of 12 bytes (frames,
    100 ns per frame, bytes per frame, kind), then float32, all big-endian.
    """
    raw = path.read_bytes()
    for order in "<>":
        if len(raw) > 4 and 4 * struct.unpack(f"{order}i", raw[:4])[0] == len(raw) - 4:
            values, columns = np.frombuffer(raw, f"{order}f4", offset=4), CEPSTRA
            if len(values) % CEPSTRA:
                raise CorpusError.one(path, f"holds {len(values)} values, expected a multiple of {CEPSTRA}")
            break
    else:
        frames, period, size, kind = struct.unpack(">iihH", raw[:12]) if len(raw) > 12 else (0, 0, 0, 0)
        if kind & HTK_PACKED:
            raise CorpusError.one(path, "is a compressed HTK file (_C or _K); convert it with HCopy first")
        if frames < 1 or len(raw) != 12 + frames * size:
            what = f"is {len(raw)} bytes that are neither a Sphinx nor an HTK feature file, or was cut short"
            raise CorpusError.one(path, f"{what}; extract it again")
        if size != 4 * CEPSTRA or period != round(UNITS_PER_SECOND * FRAME_SECONDS):
            what = f"has {size // 4} columns every {period / 10_000:g} ms, expected {CEPSTRA} every 10 ms"
            raise CorpusError.one(path, f"{what}: it belongs to another set of features")
        values, columns = np.frombuffer(raw, ">f4", offset=12), size // 4
    cepstra = values.astype(np.float32).reshape(-1, columns)
    if not np.isfinite(cepstra).all():
        raise CorpusError.one(path, "holds values that are not numbers; extract it again")
    return cepstra


def frame_states(name, segments):
    """Return the name of the state at each frame of an utterance; its segments must follow one another from 0."""
    edges = [0, *(round(segment.end / FRAME_SECONDS) for segment in segments)]
    starts = [round(segment.start / FRAME_SECONDS) for segment in segments]
    if starts != edges[:-1] or any(a >= b for a, b in pairwise(edges)):
        raise CorpusError.one(name, "its states do not follow one another from time 0; expected CNTK's glob_0000.mlf")
    return np.repeat([segment.name for segment in segments], np.diff(edges))


def labelled_frames(features, labels):
    """Return {utterance: (cepstra, states)} of the utterances of a master label file, by name.

    Raises a CorpusError with everything that is missing or does not fit.
    """
    files, problems, found = {}, [], {}
    for path in sorted(Path(features).rglob("*")):
        if path.suffix.lower() == ".mfc":
            files.setdefault(path.stem.lower(), []).append(path)
    if not files:
        raise CorpusError.one(features, "holds no feature file; expected UTTERANCE.mfc files, in folders or not")
    for entry, segments in read_mlf(labels).items():
        name = entry.rsplit("/", 1)[-1].lower()
        if not re.fullmatch(r"\w+-\w+-b", name):
            problems.append(Problem(str(labels), f"names {entry!r}; expected an utterance such as an251-fash-b"))
        elif len(files.get(name, [])) != 1:
            there = f"{len(files.get(name, []))} feature files {name}.mfc"
            problems.append(Problem(str(features), f"holds {there}; expected one, in the format of Sphinx or HTK"))
        else:
            try:
                cepstra, states = read_cepstra(files[name][0]), frame_states(name, segments)
            except CorpusError as error:
                problems += error.problems
                continue
            if not len(states) <= len(cepstra) <= len(states) + SURPLUS:
                what = f"has {len(cepstra)} frames, its labels {len(states)}; they do not belong together"
                problems.append(Problem(str(files[name][0]), what))
            found[name] = cepstra[: len(states)], states
    raise_any(problems)
    return found


def arrays_of(utterances):
    """Return the arrays of the file: utterances and states in alphabetical order, parts by speaker."""
    names = sorted(utterances)
    part_of = {speaker: part for part, held_out in SPEAKERS.items() for speaker in held_out}
    speakers = [name.split("-")[1] for name in names]
    state_names, labels = np.unique(np.concatenate([utterances[name][1] for name in names]), return_inverse=True)
    return {
        "features": np.concatenate([utterances[name][0] for name in names]),
        "labels": labels.astype(np.int16),
        "lengths": np.array([len(utterances[name][1]) for name in names], dtype=np.int32),
        "utterances": np.array(names),
        "speakers": np.array(speakers),
        "split": np.array([part_of.get(speaker, "train") for speaker in speakers]),
        "state_names": state_names,
    }


def digest(name, array):
    """Return the sha256 of an array: numbers as little-endian bytes by rows, texts in UTF-8 with line feeds between."""
    if name in NUMBERS:
        return hashlib.sha256(np.ascontiguousarray(array, dtype=NUMBERS[name]).tobytes()).hexdigest()
    return hashlib.sha256("\n".join(array.tolist()).encode()).hexdigest()


def differences(arrays):
    """Return one line for each array that is not that of the file which the figures were measured on."""
    causes = {
        "features": f"the mean of the first column is {arrays['features'][:, 0].mean(dtype=np.float64):.3f}, expected "
        f"{MEAN_ENERGY}; features of another front end give other errors",
        "lengths": f"{len(arrays['lengths'])} utterances and {arrays['lengths'].sum()} frames, expected 948 and 252734",
    }
    return [
        f"{name} differs: {causes.get(name, 'the labels are of another version, or the speakers were changed')}"
        for name in ARRAYS
        if digest(name, arrays[name]) != DIGESTS[name]
    ]


def main():
    """Build or check the file; end with status 1 and say what is wrong, without writing anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path, help="folder of AN4's feature files, UTTERANCE.mfc")
    parser.add_argument("--labels", type=Path, help="CNTK's state alignment, glob_0000.mlf")
    parser.add_argument("--out", type=Path, default=Path("an4_states.npz"), help="file to write (an4_states.npz)")
    parser.add_argument("--check", type=Path, help="a file that exists already: compare it, write nothing")
    options = parser.parse_args()
    if options.check is None and (options.features is None or options.labels is None):
        sys.exit(f"{parser.format_help()}\nNothing was built: --features and --labels are needed, or --check.")
    try:
        if options.check is not None:
            arrays = read_feature_file(options.check)[1]
        else:
            arrays = arrays_of(labelled_frames(options.features, options.labels))
    except CorpusError as error:
        sys.exit(f"{error}\nNothing was written. python benchmarks/build_an4.py --help says where to get the files.")
    found = differences(arrays)
    if found:
        listed = "\n".join(f"  {line}" for line in found)
        sys.exit(f"not the file that the figures of this repository were measured on:\n{listed}\nNothing was written.")
    if options.check is None:
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_atomically(options.out, content.getvalue())
    print(f"{options.check or options.out}: all {len(ARRAYS)} arrays have the digests of the file we measure on")


if __name__ == "__main__":
    main()
