"""Speech: corpora with features and state labels, audio, labels, forced alignment, and scores of recognition."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.speech._alignment import align, boundary_errors
    from echolearn.speech._audio import read_audio, read_channels
    from echolearn.speech._augmentation import (
        speaker_maps,
        time_masks,
        usual_deviations,
        vocal_tract_warps,
        warp_matrix,
    )
    from echolearn.speech._corpus import Corpus, open_corpus
    from echolearn.speech._features import mfcc, normalised, with_context, with_differences
    from echolearn.speech._labels import Segment, read_labels, read_mlf, read_phn, write_mlf
    from echolearn.speech._phone_set import ENGLISH, TIMIT_61
    from echolearn.speech._scoring import Evaluation, evaluate, matched_pairs

__all__ = [
    "ENGLISH",
    "TIMIT_61",
    "Corpus",
    "Evaluation",
    "Segment",
    "align",
    "boundary_errors",
    "evaluate",
    "matched_pairs",
    "mfcc",
    "normalised",
    "open_corpus",
    "read_audio",
    "read_channels",
    "read_labels",
    "read_mlf",
    "read_phn",
    "speaker_maps",
    "time_masks",
    "usual_deviations",
    "vocal_tract_warps",
    "warp_matrix",
    "with_context",
    "with_differences",
    "write_mlf",
]

# Imported at first use: reading a label file needs neither numba nor the synthesiser.
__getattr__, __dir__ = names_at_first_use(
    __name__,
    {
        "_alignment": ("align", "boundary_errors"),
        "_audio": ("read_audio", "read_channels"),
        "_augmentation": ("speaker_maps", "time_masks", "usual_deviations", "vocal_tract_warps", "warp_matrix"),
        "_corpus": ("Corpus", "open_corpus"),
        "_features": ("mfcc", "normalised", "with_context", "with_differences"),
        "_labels": ("Segment", "read_labels", "read_mlf", "read_phn", "write_mlf"),
        "_phone_set": ("ENGLISH", "TIMIT_61"),
        "_scoring": ("Evaluation", "evaluate", "matched_pairs"),
    },
)
