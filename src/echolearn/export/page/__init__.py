"""A fitted model as one self-contained page for the browser: `echolearn page` and `echolearn explore`."""

from echolearn.export.page.document import PageModel, page_document

__all__ = ["PageModel", "page_document"]
