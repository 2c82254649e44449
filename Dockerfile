FROM python:3.11-slim-bookworm
# Spark needs Java; ps is what Spark's scripts look at.
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY runtime runtime
# The jars of Delta and S3 are fetched while the image is built: no start needs the network.
ENV ONDATRA_JARS_DIR=/opt/jars PYTHONUNBUFFERED=1 DJANGO_SETTINGS_MODULE=ondatra_web.settings
RUN python -m runtime.lake.jars s3 /opt/jars
COPY . .
# A plain user, who owns the data folder and nothing else; a volume mounted there takes over whose it is.
RUN useradd --uid 10001 --create-home ondatra && install -d -o ondatra -g ondatra -m 700 /app/data
USER ondatra
