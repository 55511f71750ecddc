"""Check the prose of the documents: spelling (codespell), and words that a reader stumbles over.

    python tools/words.py

Prints one line per finding and ends with status 1 if there is any. `WORDS` is the list of the project: an idiom, and
what to write instead.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = {
    r"a label a (step|sequence)": "one label per step, one per sequence",
    r"one a (step|sequence|cell|row)": "one per step",
    r"(is|are) (said|told|heard)\b": "is reported, is named, is input",
    r"speaks? up": "warns",
    r"\bmended\b": "fixed",
    r"nobody is lost": "say what happens",
    r"for ever\b": "permanently",
    r"who may look ahead": "a network that may read ahead",
    r"at the door\b": "on input",
    r"in the rooms\b": "inside",
    r"\bgoes on\b": "resumes, continues",
    r"\bas it comes\b": "with its defaults",
    r"\bthe like\b": "name the things",
    r"\bwherefore\b|\bthereof\b|\bhereby\b|\bamongst\b": "a plain word",
    r"\bjust\b|\bsimply\b|\bobviously\b": "nothing: leave the word out",
    r"\beasy\b|\beasily\b": "say how many steps",
    r"\b(mends?|mending)\b": "fix, correct",
    r"\bgo on\b": "resume, continue",
    r"\b(labels?|lines?|files?|rows?|pass|passes|epochs?|minute|threads?|states?|steps?) an? "
    r"(batch|cell|class|core|epoch|number|phone|reader|seed|sequence|state|step|system|unit|utterance)\b": "per",
    r"\b(is|are|be|were|was) told (apart|from|of)\b|\btell(s|ing)? (apart|the sides)\b": "distinguish",
    r"\bin kind\b": "in the same form",
    r"\b(at|on) (its|their) word\b|\bto the letter\b": "as given, exactly as printed",
    r"\bmade-up\b": "synthetic",
    r"\bwrong way round\b": "in the wrong order",
    r"\b(do|does|did|must) (not )?pay\b|\bpays? off\b": "help, be better",
    r"\bin view\b": "known",
    r"\bwill do\b": "is sufficient, is accepted",
    r"\bat bay\b|\bpoints nowhere\b|\bran away\b": "say what happens: diverges, has a random direction",
    r"\bas ever\b": "as elsewhere, or nothing",
    r"\bwithout a word\b": "without a warning",
    r"\bhears? (one|the|from)\b": "is connected to, receives",
    r"\bone's own\b": "your own",
    r"\b(first|fourth|second) looks?\b": "reading of the test part",
    r"\bagain and again\b": "repeatedly",
    r"\bwhoever\b|\bwhosoever\b": "anyone who",
    r"\butiliz|\butilis|\bleverag": "use",
}
IGNORED = "retuned,ans,hist,nd,sur,te,fo,unit,recuring,mis,fpr,tha,ue,thi,iy"  # phones, names, German
PROSE = re.compile(r"```.*?```|`[^`\n]+`|<!--.*?-->|\]\([^)]*\)|^ {4}[^\n]*$|^\|[^\n]*$", re.DOTALL | re.MULTILINE)


def documents():
    """Return the pages and the other texts for readers."""
    built = ROOT / "docs" / "_build", ROOT / "docs" / "gallery", ROOT / "docs" / "reference" / "api"
    pages = [p for p in (ROOT / "docs").rglob("*.md") if not any(p.is_relative_to(b) for b in built)]
    others = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "RELEASING.md", "CODE_OF_CONDUCT.md")
    return sorted(pages) + [ROOT / name for name in others]


def prose(text):
    """Return a text in which code, comments, targets of links and tables are blank, line by line."""
    return PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def idioms(path):
    """Yield a finding for every word of the list."""
    for number, line in enumerate(prose(path.read_text(encoding="utf-8")).splitlines(), 1):
        for pattern, instead in WORDS.items():
            if found := re.search(pattern, line, re.IGNORECASE):
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]!r}; write: {instead}"


def misspellings():
    """Return what codespell finds."""
    command = [sys.executable, "-m", "codespell_lib", "--ignore-words-list", IGNORED, *map(str, documents())]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def main():
    found = [finding for path in documents() for finding in idioms(path)] + misspellings()
    print("\n".join(found) or "no findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
