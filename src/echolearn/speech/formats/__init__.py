"""Files of other programs: features and alignments of Kaldi, results as CTM, STM, TextGrid, MLF and JSON."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.speech._sources.kaldi_folder import read_data_folder
    from echolearn.speech.formats._json import read_json, write_json
    from echolearn.speech.formats._kaldi import open_scp, read_ark, write_ark
    from echolearn.speech.formats._nist import StmSegment, read_ctm, read_stm, write_ctm, write_stm
    from echolearn.speech.formats._results import Recognised, TimedToken
    from echolearn.speech.formats._textgrid import read_textgrid, write_textgrid
    from echolearn.speech.formats._write import write_results

__all__ = [
    "Recognised",
    "StmSegment",
    "TimedToken",
    "open_scp",
    "read_ark",
    "read_ctm",
    "read_data_folder",
    "read_json",
    "read_stm",
    "read_textgrid",
    "write_ark",
    "write_ctm",
    "write_json",
    "write_results",
    "write_stm",
    "write_textgrid",
]

# Imported at first use, because readers of labels and of data folders use these modules themselves.
__getattr__, __dir__ = names_at_first_use(
    __name__,
    {
        "._sources.kaldi_folder": ("read_data_folder",),
        "_json": ("read_json", "write_json"),
        "_kaldi": ("open_scp", "read_ark", "write_ark"),
        "_nist": ("StmSegment", "read_ctm", "read_stm", "write_ctm", "write_stm"),
        "_results": ("Recognised", "TimedToken"),
        "_textgrid": ("read_textgrid", "write_textgrid"),
        "_write": ("write_results",),
    },
)
