"""The corpus of a command, opened with its progress on the terminal, and the features of one of its parts."""

from __future__ import annotations

from typing import Unpack

from echolearn.cli.options import CorpusOptions
from echolearn.cli.progress import stage_progress, stderr
from echolearn.speech import Corpus, open_corpus
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.validation import Array

NO_CORPUS = (
    "no corpus is given; add --corpus synthetic, or the one that you have, such as --corpus wav:DIR. The commands "
    "evaluate and predict also take a table: DATA.csv."
)


def opened_corpus(recipe: FeatureRecipe | None = None, **options: Unpack[CorpusOptions]) -> Corpus:
    """Open a corpus, with features normalised as in the recipe of a model unless an option chooses otherwise."""
    if options["corpus"] is None:
        raise ValueError(NO_CORPUS)
    usual = "utterance" if recipe is None or recipe.normalise == "none" else recipe.normalise
    with stage_progress(stderr()) as progress:
        return open_corpus(
            options["corpus"],
            frames=options["frames"],
            seed=options["corpus_seed"],
            cache=options["cache"],
            labels=options["labels"],
            normalise=options["normalise"] or usual,
            transcripts=options["transcripts"],
            progress=progress,
        )


def part_features(corpus: Corpus, part: str) -> tuple[list[str], list[Array]]:
    which = corpus.which(part)
    if not which:
        raise ValueError(f"{corpus.name} has no utterances of the {part} part.")
    return [corpus.utterances[k] for k in which], [corpus.features[k] for k in which]
