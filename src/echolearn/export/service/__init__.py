"""A model behind HTTP and websockets: `echolearn serve`. Needs the extra `serve`.

`models` says what is served, `application` is the ASGI application, `server` runs it. A model that `echolearn.runtime`
can run is served without the compiled library; `library` and `recognizers` load it for the others.
"""
