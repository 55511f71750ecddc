"""The corpus of a command, opened with its progress on the terminal."""

from __future__ import annotations

from typing import Unpack

from echolearn.cli.errors import UserError
from echolearn.cli.options import CorpusOptions
from echolearn.cli.progress import stage_progress, stderr
from echolearn.exceptions import EspeakError
from echolearn.speech.corpus import Corpus, open_corpus


def opened_corpus(**options: Unpack[CorpusOptions]) -> Corpus:
    """Return the corpus that the options of a command name."""
    with stage_progress(stderr()) as progress:
        try:
            return open_corpus(
                options["corpus"],
                frames=options["frames"],
                seed=options["corpus_seed"],
                cache=options["cache"],
                labels=options["labels"],
                normalise=options["normalise"],
                transcripts=options["transcripts"],
                progress=progress,
            )
        except EspeakError as problem:
            raise UserError(str(problem)) from problem
