"""Self-contained pages on which a fitted model runs in the browser, as `echolearn page` writes them."""

from echolearn.export.page.document import Page, PageModel, build_page
from echolearn.export.page.opening import open_models, page_model

__all__ = ["Page", "PageModel", "build_page", "open_models", "page_model"]
