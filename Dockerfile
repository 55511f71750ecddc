# echolearn serve, from requirements.lock: every package by version and hash.
#   docker build --target light -t echolearn .        networks: NumPy and the packages of the service (default)
#   docker build --target speech -t echolearn-speech . recognisers: the whole library and what reads recordings
FROM python:3.13-slim AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY tools/locked_subset.py tools/
COPY src src
RUN python -m venv /build/venv \
    && python tools/locked_subset.py hatchling packaging pathspec pluggy trove-classifiers > build.txt \
    && /build/venv/bin/pip install --require-hashes -r build.txt \
    && /build/venv/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /build/wheels . \
    && python -m venv /opt/echolearn

FROM builder AS light-builder
RUN python tools/locked_subset.py numpy click starlette uvicorn h11 anyio idna typing-extensions websockets \
        prometheus-client > light.txt \
    && /opt/echolearn/bin/pip install --require-hashes -r light.txt \
    && /opt/echolearn/bin/pip install --no-deps wheels/*.whl

FROM light-builder AS speech-builder
RUN python tools/locked_subset.py scipy numba llvmlite scikit-learn joblib threadpoolctl narwhals rich \
        markdown-it-py mdurl pygments kaldi-native-fbank soundfile cffi pycparser numpy typing-extensions > speech.txt \
    && /opt/echolearn/bin/pip install --require-hashes -r speech.txt

FROM python:3.13-slim AS base
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin echolearn
ENV PATH=/opt/echolearn/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["echolearn", "serve"]
CMD ["/model.safetensors", "--host", "0.0.0.0"]

FROM base AS speech
ENV NUMBA_CACHE_DIR=/tmp/numba
COPY --from=speech-builder /opt/echolearn /opt/echolearn
USER 10001:10001

FROM base AS light
COPY --from=light-builder /opt/echolearn /opt/echolearn
USER 10001:10001
