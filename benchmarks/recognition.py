"""Phones and words of AN4: the contest's networks of both sides behind the same decoder.

    python benchmarks/recognition.py --data an4_states.npz --words an4/etc --valid-only    never touches the test part
    python benchmarks/recognition.py --data an4_states.npz --words an4/etc

The networks are those that benchmarks/contest.py has trained (runs/contest). Everything else of a recogniser comes from
the training part: durations, priors and n-grams of phones and words; the weights of the decoder and its beam are tuned
on valid. benchmarks/frozen/recognition.toml holds rows and candidates; docs/evidence/protocol.md explains the rules.
`--words` names the folder with an4.dic and the two .transcription files of AN4's public distribution. The searches for
weights keep their trials in runs/recognition, so that an interrupted run resumes.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import cloudpickle
import numpy as np

import an4
import protocol
import results
from contest_plan import CORES
from echolearn.modelfile.snapshot import fingerprint
from echolearn.speech import matched_pairs
from echolearn.speech._phone_set import phones_of_states
from echolearn.speech._transcripts import match_transcripts, read_transcripts
from echolearn.speech.recognition import estimate, read_lexicon
from echolearn.speech.recognition._decoder import WORD_WEIGHTS, Decoder, learn_phone_task, state_shares
from echolearn.speech.recognition._graph import word_graph
from echolearn.speech.recognition._lexicon import spelled_in
from echolearn.speech.recognition._phone_models import learn_phone_models, spoken_phones
from echolearn.speech.recognition._tuning import (
    MIN_STANDARD_ERRORS,
    evaluate_phones,
    evaluate_words,
    tune_phones,
    tune_words,
)

EXPERIMENT = "recognition"
SIDES = ("ours", "torch")
SILENCE = "sil"
TEST = "test"  # its names and transcripts; its sound and labels come through protocol.open_test
FRAMES_PER_SECOND = 100


class Speech:
    """The parts of AN4 with their phones, words and speakers."""

    def __init__(self, data, words, frozen):
        self.path, self.frozen = an4.data_file(data), frozen
        digest = protocol.data_digest(self.path)
        if digest != frozen["arrays_sha256"]:
            sys.exit(f"{data} has the digest {digest}, but the settings were frozen for {frozen['arrays_sha256']}.")
        with np.load(self.path, allow_pickle=False) as file:
            self.state_names = [str(name) for name in file["state_names"]]
            self.index = {part: np.flatnonzero(file["split"] == part) for part in ("train", "valid", TEST)}
            self.utterances = [str(name) for name in file["utterances"]]
            self.speaker = dict(zip(self.utterances, map(str, file["speakers"]), strict=True))
        self.parts = an4.load_cepstra(self.path)
        self.lexicon_file = Path(words) / "an4.dic"
        listed = {}
        for name in ("an4_train", "an4_test"):
            listed |= read_transcripts(Path(words) / f"{name}.transcription")
        self.transcripts = match_transcripts(self.utterances, listed, words)
        self.searches = protocol.ROOT / "runs" / EXPERIMENT
        self.searches.mkdir(parents=True, exist_ok=True)

    def names(self, part):
        """Return the names of a part's utterances."""
        return [self.utterances[i] for i in self.index[part]]

    def words(self, part):
        """Return the words of each utterance of a part."""
        return {self.utterances[i]: self.transcripts[i] for i in self.index[part]}

    def phones(self, part, labels):
        """Return the spoken phones of each utterance of a part."""
        return dict(zip(self.names(part), (spoken_phones(y, self.state_names) for y in labels), strict=True))

    def trials(self, kind, order, found):
        """Return the file of what a search for weights has tried with the probabilities of one network."""
        return self.searches / f"{kind}-{order}-{fingerprint(*found)}.json"

    def phone_decoder(self, order):
        """Return a decoder of phones that has not been tuned."""
        return learn_phone_task(self.parts["train"][1], self.state_names, order=order).decoder()

    @cached_property
    def phone_models(self):
        """Return the durations of phones on train."""
        return learn_phone_models(self.parts["train"][1], self.state_names)

    def word_decoder(self, order):
        """Return a decoder of words that has not been tuned: all words of the lexicon, n-gram of train."""
        lexicon = spelled_in(read_lexicon(self.lexicon_file), phones_of_states(self.state_names))
        model = estimate(list(self.words("train").values()), order=order, vocabulary=lexicon.words)
        graph = word_graph(self.phone_models, lexicon, model, silence=SILENCE)
        priors = state_shares(self.parts["train"][1], len(self.state_names))
        return Decoder(graph, priors, WORD_WEIGHTS)


def trained(name, budget, side, seeds):
    """Return the contest's networks of a candidate, one per seed, as functions from cepstra to probabilities."""
    candidates = protocol.read_frozen(side)["candidate"]
    settings = next(c["settings"] for c in candidates if (c["name"], c["budget"]) == (name, budget))
    runs = json.loads((results.FOLDER / "contest.json").read_text())["runs"]
    found = {}
    for key, run in runs.items():
        same = (run["side"], run["settings"], run["core_seconds"], run["every"])
        if same == (side, settings, CORES * budget, 1):
            found[run["seed"]] = protocol.ROOT / "runs" / "contest" / f"{key}.model"
    missing = [seed for seed in seeds if seed not in found or not found[seed].is_file()]
    if missing:
        raise FileNotFoundError(f"{name}, {budget} s: no network of seed {missing[0]}; run benchmarks/contest.py first")
    return [cloudpickle.loads(found[seed].read_bytes()) for seed in seeds]


def answers(models, cepstra, averaged):
    """Return the probabilities of each network, or of their mean; a list of arrays for each."""
    found = [[np.asarray(P, dtype=np.float64) for P in model(cepstra)] for model in models]
    return [[np.mean(own, axis=0) for own in zip(*found, strict=True)]] if averaged else found


def counted(evaluation):
    """Return the error rate and its parts, in percent of the reference."""
    total = evaluation.total
    kinds = ("substitutions", "deletions", "insertions")
    parts = {name: 100 * getattr(total, name) / total.reference for name in kinds}
    low, high = (100 * value for value in evaluation.interval()[1:])
    return {"error": 100 * total.error_rate, **parts, "low": low, "high": high}


def recognised(decoder, names, found):
    """Return what the decoder finds in each utterance, and its processor seconds per second of speech."""
    began = time.process_time()
    tokens = {name: decoder.decode(P) for name, P in zip(names, found, strict=True)}
    seconds = time.process_time() - began
    return tokens, seconds / (sum(len(P) for P in found) / FRAMES_PER_SECOND)


def phone_scores(speech, decoder, part, labels, found):
    """Return the phone errors of networks on a part, one evaluation per network, and the decoder's real-time factor."""
    references, names = speech.phones(part, labels), speech.names(part)
    scores, factors = [], []
    for own in found:
        tokens, factor = recognised(decoder, names, own)
        scores.append(evaluate_phones(references, tokens, speakers=speech.speaker))
        factors.append(factor)
    return scores, statistics.mean(factors)


def word_scores(speech, decoder, part, found):
    """Return the word errors of networks on a part, one evaluation per network."""
    references, names = speech.words(part), speech.names(part)
    scores = []
    for own in found:
        tokens, _ = recognised(decoder, names, own)
        scores.append(evaluate_words(references, tokens, speakers=speech.speaker))
    return scores


def tuned_phones(speech, order, found):
    """Return the decoder tuned on valid with the first network, and its valid errors with all networks."""
    _, labels = speech.parts["valid"]
    probabilities = dict(zip(speech.names("valid"), found[0], strict=True))
    references, record = speech.phones("valid", labels), speech.trials("phones", order, found[0])
    decoder, _ = tune_phones(speech.phone_decoder(order), references, probabilities, record=record)
    return decoder, phone_scores(speech, decoder, "valid", labels, found)[0]


def tuned_words(speech, order, found):
    """Return the word decoder tuned on valid with the first network, and its valid errors with all networks."""
    probabilities = dict(zip(speech.names("valid"), found[0], strict=True))
    record = speech.trials("words", order, found[0])
    decoder, _ = tune_words(speech.word_decoder(order), speech.words("valid"), probabilities, record=record)
    return decoder, word_scores(speech, decoder, "valid", found)


def mean_error(scores):
    """Return the mean error rate in percent."""
    return 100 * statistics.mean(score.total.error_rate for score in scores)


def choose(speech, row, side):
    """Return a side's candidate, order and tuned decoder of the smallest mean phone error on valid, with all trials."""
    trials = []
    for name, budget in row[side]:
        models = trained(name, budget, side, speech.frozen["seeds"])
        found = answers(models, speech.parts["valid"][0], row.get("averaged", False))
        for order in speech.frozen["orders"]:
            decoder, scores = tuned_phones(speech, order, found)
            trials.append({"name": name, "order": order, "valid": mean_error(scores), "models": models})
            trials[-1] |= {"decoder": decoder, "found": found}
            print(f"  {side}: {name}, {order}-gram: valid {trials[-1]['valid']:.2f} % of phones", flush=True)
    return min(trials, key=lambda trial: trial["valid"]), trials


def described(trial):
    """Return what is recorded of a trial."""
    return {key: trial[key] for key in ("name", "order", "valid")} | {"weights": asdict(trial["decoder"].weights)}


def compared(ours, theirs):
    """Return the relative difference of the mean errors, and the p-value of a matched-pairs test per seed."""
    difference = 1 - mean_error(ours) / mean_error(theirs)
    tests = [matched_pairs(a, b).p_value for a, b in zip(ours, theirs, strict=True)]
    return {"relative": difference, "p_values": tests}


def run_row(speech, row, test):
    """Return the figures of one row. test: function that opens the test part, or None to stay on valid."""
    record = {
        key: row[key] for key in ("name", "seconds", "asked", "most", "most_words", "asked_of_first") if key in row
    }
    record["standard_errors"] = MIN_STANDARD_ERRORS  # rows without it are from the search before
    chosen = {}
    for side in SIDES:
        chosen[side], trials = choose(speech, row, side)
        record[side] = {"chosen": described(chosen[side]), "trials": [described(trial) for trial in trials]}
    decoders = {}
    for order in speech.frozen["word_orders"] if row.get("words") else []:
        for side in SIDES:
            decoders[side, order], scores = tuned_words(speech, order, chosen[side]["found"])
            weights = asdict(decoders[side, order].weights)
            record[side].setdefault("words", {})[order] = {"valid": mean_error(scores), "weights": weights}
            print(f"  {side}: words, {order}-gram: valid {mean_error(scores):.2f} %", flush=True)
    if test is not None:
        (cepstra, labels), record["opened"] = test()
        found = {side: answers(chosen[side]["models"], cepstra, row.get("averaged", False)) for side in SIDES}
        record |= tested(speech, record, chosen, decoders, (labels, found))
    return record


def tested(speech, record, chosen, decoders, part):
    """Return the sides of a record with their test errors, and the comparison."""
    labels, found = part
    phones, words = {}, {}
    for side in SIDES:
        phones[side], factor = phone_scores(speech, chosen[side]["decoder"], TEST, labels, found[side])
        record[side] |= {"test": [counted(score) for score in phones[side]], "real_time_factor": factor}
    for side, order in decoders:
        words[side, order] = word_scores(speech, decoders[side, order], TEST, found[side])
        record[side]["words"][order]["test"] = [counted(score) for score in words[side, order]]
    comparison = {"phones": compared(phones["ours"], phones["torch"])}
    for order in sorted({order for _, order in decoders}):
        comparison[f"words {order}"] = compared(words["ours", order], words["torch", order])
    return {"compared": comparison}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="an4_states.npz")
    parser.add_argument("--words", required=True, help="the folder with an4.dic and the transcripts")
    parser.add_argument("--only", nargs="*", type=int, help="numbers of the rows, from 0")
    parser.add_argument("--valid-only", action="store_true", help="leave the test part alone; nothing is written")
    options = parser.parse_args()
    frozen = protocol.read_frozen(EXPERIMENT)
    speech = Speech(options.data, options.words, frozen)

    def test():
        return protocol.open_test(EXPERIMENT, speech.path, seeds=frozen["seeds"])

    for number, row in enumerate(frozen["row"]):
        if options.only is not None and number not in options.only:
            continue
        print(f"{row['name']}, {row['seconds']} s", flush=True)
        record = run_row(speech, row, None if options.valid_only else test)
        if options.valid_only:
            continue
        with protocol.updated(results.FOLDER / f"{EXPERIMENT}.json") as content:
            rows = content.setdefault("rows", {})
            if str(number) in rows:
                content.setdefault("superseded", []).append(rows[str(number)])
            rows[str(number)] = record
        print(json.dumps(record["compared"]), flush=True)


if __name__ == "__main__":
    main()
