"""Self-contained pages on which a fitted model runs in the browser, as `echolearn page` writes them."""
