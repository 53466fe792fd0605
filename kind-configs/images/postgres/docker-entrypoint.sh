#!/bin/bash
# The part of the official image's entrypoint that matters to a test: a first start makes the cluster and its user.
set -euo pipefail

if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=${POSTGRES_USER:-postgres}
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "${POSTGRES_HOST_AUTH_METHOD:-}" != trust ]; then
    echo "set POSTGRES_PASSWORD, or POSTGRES_HOST_AUTH_METHOD=trust" >&2
    exit 1
  fi
  mkdir -p "$PGDATA"
  chmod 700 "$PGDATA"
  # shellcheck disable=SC2086 # several words, as with the official image
  initdb --username="$user" --pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:-trusted}") ${POSTGRES_INITDB_ARGS:-}
  printf 'host all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$PGDATA/pg_hba.conf"
  database=${POSTGRES_DB:-$user}
  if [ "$database" != postgres ]; then
    pg_ctl --wait --options="-c listen_addresses=''" start
    PGPASSWORD=${POSTGRES_PASSWORD:-trusted} createdb --username="$user" --no-password "$database"
    pg_ctl --wait --mode=fast stop
  fi
fi
exec "$@"
