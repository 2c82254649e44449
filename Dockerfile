FROM python:3.11-slim-bookworm
# Spark needs Java; ps is what Spark's scripts look at.
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY runtime runtime
# Delta's jars are fetched while the image is built: no start needs the network.
ENV ONDATRA_JARS_DIR=/opt/jars PYTHONUNBUFFERED=1 DJANGO_SETTINGS_MODULE=ondatra_web.settings
RUN python -m runtime.lake.jars delta /opt/jars
COPY . .
