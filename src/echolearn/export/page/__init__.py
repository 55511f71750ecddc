"""A fitted model as one self-contained page for the browser: `echolearn page` and `echolearn explore`."""

from echolearn.export.page.document import Page, PageModel, build_page
from echolearn.export.page.opening import open_models, page_model

__all__ = ["Page", "PageModel", "build_page", "open_models", "page_model"]
