# mooring as an image: docker build --tag mooring:0.1.0 .
# No step depends on the architecture: docker buildx build --platform linux/amd64,linux/arm64 …

FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY deploy/image/run.lock deploy/image/build.lock ./
RUN python -m venv /opt/mooring \
 && /opt/mooring/bin/pip install --require-hashes --only-binary=:all: --requirement run.lock \
 && pip install --require-hashes --only-binary=:all: --requirement build.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN python -m hatchling build --target wheel --directory dist \
 && /opt/mooring/bin/pip install --no-deps --no-index --find-links dist mooring

FROM python:3.12-slim
LABEL org.opencontainers.image.title="mooring" \
      org.opencontainers.image.description="Kubernetes scheduling in Python" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
COPY --from=build /opt/mooring /opt/mooring
ENV PATH=/opt/mooring/bin:$PATH PYTHONUNBUFFERED=1
# The base has no bytecode of the standard library, and a read-only root would never get any.
RUN ["python", "-c", "import mooring.cli.run.command, mooring.cli.run.endpoints"]
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /
USER 65532:65532
EXPOSE 10259
HEALTHCHECK NONE
ENTRYPOINT ["mooring"]
