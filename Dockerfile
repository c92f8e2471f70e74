# Napkin alone, as a user without rights, on a file system it does not write to: plans lie in /data or in DATABASE_URL.
#   docker build -t napkin . && docker run --read-only --tmpfs /tmp -v napkin:/data -p 8501:8501 napkin
FROM python:3.11.14-slim-bookworm

# torch for CPUs, a tenth of PyPI's. For a GPU: --build-arg TORCH_INDEX=https://pypi.org/simple
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin napkin \
    && install -d -o napkin -g napkin -m 700 /data
WORKDIR /app
COPY requirements.txt ./
COPY deploy/requirements.txt deploy/requirements.lock deploy/
# All by the hashes of what was tried; then torch by its version, as each index has other bytes of it.
RUN pip install --no-cache-dir --require-hashes --no-deps -r deploy/requirements.lock \
    && pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" -r deploy/requirements.txt

COPY app.py ./
COPY .streamlit/config.toml .streamlit/
COPY assets assets
COPY core core
COPY pages pages
RUN ln -s assets/static static && python -m compileall -q app.py core pages

ENV HOME=/tmp NAPKIN_DATA=/data PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
VOLUME /data
USER 10001
EXPOSE 8501
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501"]
