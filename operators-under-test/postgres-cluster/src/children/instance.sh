#!/bin/bash
# What runs in an instance's pod. Level-triggered, as the operator is: again and again it looks at what its role is (the
# pod's label, shown by the kubelet as a file) and at what its PostgreSQL does, and takes the one step between the two.
# It remembers nothing; killed at any line, the next container starts at the top and finds the volume as it is.
#
#   run           the container `postgres`
#   watch         the container `confirmed`, which is there for its probe only
#   is-level      ready: PostgreSQL does what the role says
#   is-confirmed  ready: the primary itself says that no row is acknowledged without this instance
#   dump          the backup Job
#
# Why no acknowledged row is lost: a primary acknowledges a row when every instance in its annotation `confirmed-by` has
# it on disk, and the operator promotes none but those. One that was promoted no longer confirms for the old primary,
# so from that moment the old one can acknowledge nothing, even if it has not heard of its demotion yet.
set -uo pipefail

volume=$(dirname "$PGDATA")
config=${CONFIG:-/etc/postgres}
pod_info=${POD_INFO:-/etc/pod-info}
backup=${BACKUP:-/backup}
sockets=/tmp
export PGUSER=postgres PGDATABASE=postgres PGCONNECT_TIMEOUT=2

say() { echo "instance: $*"; }

# --- looking ---------------------------------------------------------------------------------------------------------

# One directory holds one version of the pod's labels and annotations; the kubelet swaps it as a whole.
look() {
    local seen
    seen=$(readlink -f "$pod_info/..data") || return
    role=$(<"$seen/role") && confirmed_by=$(<"$seen/confirmed-by") && bootstrap=$(<"$seen/bootstrap")
}

# A server that accepts and then is frozen, or a pod that is taken away under a connection, answers never and closes
# nothing. A question that waits for it would hold the loop; in a probe it holds the kubelet, which waits for two minutes
# until whatever the killed probe left behind has ended.
ask() { timeout --kill-after=1 "${patience:-4}" psql -XqAt "$@" 2>/dev/null; }
here() { ask -h 127.0.0.1 -c "$1"; }
there() { ask -h "$PRIMARY" -c "$1"; }

has_data() { [ -s "$PGDATA/PG_VERSION" ]; }
runs() { [ -n "$server" ] && kill -0 "$server" 2>/dev/null; }
primary_answers() { [ "$(there 'SELECT pg_is_in_recovery()')" = f ]; }
# The process that does it; each connection to a primary has another.
stream() { here "SELECT pid FROM pg_stat_wal_receiver WHERE status = 'streaming'"; }
streams() { [ -n "$(stream)" ]; }

# --- the loop --------------------------------------------------------------------------------------------------------

run() {
    server='' starts=0 unheard=0 declared='' compared=''
    trap 'say "asked to end"; stop; exit 0' TERM INT
    # One container a volume, whatever the API says: a pod that was deleted by force may still be at work.
    exec 9>"$volume/lock"
    until flock --nonblock 9; do
        sleep 0.5 &
        wait $!
    done
    # So the processes of a former container are gone, and its file may name the number of one of ours.
    rm -f "$PGDATA/postmaster.pid"
    while true; do
        look && step
        sleep 1 &
        wait $!
    done
}

step() {
    if ! has_data; then
        obtain
    elif ! runs; then
        start
    else
        case "$role,$(here 'SELECT pg_is_in_recovery()')" in
            primary,t) promote ;;
            primary,f) declare_reign && settings "$(confirmations)" ;;
            replica,f) step_down ;;
            replica,t) settings "$undecided" && follow ;;
        esac                                            # no answer: still starting, or stopping
    fi
}

# --- steps -----------------------------------------------------------------------------------------------------------

# A new database is made only where the operator says that there was never one. An empty volume anywhere else is a loss:
# it is filled from the primary, or waits for a person.
obtain() {
    if [ "$bootstrap" = new ]; then
        initialise
    elif [ "$role" = replica ] && primary_answers; then
        clone
    fi
}

# Aside, then renamed: half a database is none.
initialise() {
    say "making a new database"
    rm -rf "$PGDATA.new"
    initdb --pgdata="$PGDATA.new" --username=postgres --pwfile=<(echo "$PGPASSWORD") --data-checksums \
        --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 >/dev/null || return
    if [ -e "$backup" ]; then
        restore || return
    fi
    mv -T "$PGDATA.new" "$PGDATA"
}

# The password stays that of our own Secret, and the user that initdb made is not made again.
restore() {
    say "restoring $backup/all.sql"
    tail -n 5 "$backup/all.sql" | grep -q 'dump complete' || { say "the dump is not complete"; sleep 5; return 1; }
    pg_ctl start --pgdata="$PGDATA.new" --wait --silent \
        --options="-c listen_addresses='' -c unix_socket_directories=$sockets" || return
    # Nor are the reigns of the other cluster ours.
    { grep -v '^CREATE ROLE postgres;$' "$backup/all.sql" && echo 'DROP SCHEMA IF EXISTS postgres_cluster CASCADE;'; } |
        psql -Xq -h "$sockets" -v ON_ERROR_STOP=1 >/dev/null
    local loaded=$?
    pg_ctl stop --pgdata="$PGDATA.new" --wait --silent --mode=fast && return $loaded
}

# The old data go when the new are complete.
clone() {
    say "copying the primary's data"
    rm -rf "$PGDATA.new" "$PGDATA.old"
    pg_basebackup --host="$PRIMARY" --pgdata="$PGDATA.new" --wal-method=stream --checkpoint=fast || return
    touch "$PGDATA.new/standby.signal"
    if [ -e "$PGDATA" ]; then mv -T "$PGDATA" "$PGDATA.old"; fi
    mv -T "$PGDATA.new" "$PGDATA" && rm -rf "$PGDATA.old" "$volume/rewinding"
}

# Whoever is not the primary starts as a standby, whatever it was before. A primary that was none starts as a standby
# too: `promote` comes next.
start() {
    local names=$undecided
    if [ "$role" = replica ]; then touch "$PGDATA/standby.signal"; fi
    # Half rewound is no data at all; and some data no standby can start from, since the history went on without them.
    if [ -e "$volume/rewinding" ] || { [ "$role" = replica ] && [ $starts -ge 3 ] && primary_answers; }; then
        primary_answers && clone && starts=0
        return
    fi
    starts=$((starts + 1))
    if [ ! -e "$PGDATA/standby.signal" ]; then names=$(confirmations); fi
    say "starting as a $role"
    write_settings "$names"
    postgres -D "$PGDATA" -c config_file="$config/postgresql.conf" &
    server=$!
}

stop() {
    runs || return 0
    pg_ctl stop --pgdata="$PGDATA" --wait --timeout=20 --silent --mode=fast ||
        pg_ctl stop --pgdata="$PGDATA" --wait --timeout=5 --silent --mode=immediate
    wait "$server"
    server=''
}

# It takes no rows and acknowledges none until the next turns have said whose reign it is, and whom to wait for.
promote() {
    say "becoming the primary"
    declared=''
    pg_ctl promote --pgdata="$PGDATA" --wait --silent
}

# Two that were promoted one after the other, the second without having heard of the first, call their timelines by one
# number, and PostgreSQL takes them for one. So each writes down its reign before the first row on it.
declare_reign() {
    [ -n "$declared" ] || here "BEGIN READ WRITE; SET LOCAL synchronous_commit = local;
        SET LOCAL client_min_messages = error; CREATE SCHEMA IF NOT EXISTS postgres_cluster;
        CREATE TABLE IF NOT EXISTS postgres_cluster.reigns (reign text PRIMARY KEY);
        INSERT INTO postgres_cluster.reigns VALUES (substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ' $POD_NAME')
        ON CONFLICT DO NOTHING; COMMIT" && declared=yes
}

# Whether the primary knows the last reign that we know.
is_of_one_history() {
    local last
    last=$(here 'SELECT max(reign) FROM postgres_cluster.reigns') || return 0
    [ "$(there "SELECT count(*) FROM postgres_cluster.reigns WHERE reign = '$last'")" != 0 ]
}

step_down() {
    say "stepping down"
    touch "$PGDATA/standby.signal"
    stop
}

# A standby that cannot follow a primary that answers has rows that nobody was told of: its history forks off the
# primary's. They are taken back by pg_rewind; where that is impossible the data are copied anew.
follow() {
    local stream
    stream=$(stream)
    if [ -n "$stream" ] && [ "$stream" != "$compared" ]; then
        if is_of_one_history; then compared=$stream; else start_over "the primary does not know this history"; fi
    fi
    if [ -n "$stream" ] || ! primary_answers; then
        starts=0 unheard=0
        return
    fi
    unheard=$((unheard + 1))
    if [ $unheard -lt 4 ]; then return; fi
    unheard=0
    say "cannot follow the primary: rewinding"
    stop
    touch "$volume/rewinding"
    # What pg_rewind compares is the primary's last checkpoint, and that may be older than its promotion. Where it sees
    # no fork it cannot help.
    if patience=60 there CHECKPOINT &&
        pg_rewind --target-pgdata="$PGDATA" --source-server="host=$PRIMARY" 2>&1 | tee /tmp/rewound &&
        ! grep -q 'no rewind required' /tmp/rewound; then
        touch "$PGDATA/standby.signal"
        rm -f "$volume/rewinding"
    fi
}

start_over() {
    say "$1: copying anew"
    touch "$volume/rewinding"
    stop
}

# --- settings --------------------------------------------------------------------------------------------------------

# Not a name of any instance: who would wait for it waits.
undecided='"nobody yet"'

# Whose confirmations a row needs, as synchronous_standby_names: all of these. No annotation is not the same as nobody.
confirmations() {
    case "$confirmed_by" in
        '') echo "$undecided" ;;
        alone) ;;
        *) echo "FIRST $(wc -w <<<"${confirmed_by//,/ }") (\"${confirmed_by//,/\",\"}\")" ;;
    esac
}

settings_for() {
    echo "cluster_name = '$POD_NAME'"
    echo "primary_conninfo = 'host=$PRIMARY application_name=$POD_NAME connect_timeout=2'"
    echo "synchronous_standby_names = '$1'"
    echo "default_transaction_read_only = $([ "$1" = "$undecided" ] && echo on || echo off)"
}

# Beside the data, so that neither a copy nor a rewind brings somebody else's.
write_settings() {
    settings_for "$1" >"$volume/role.conf.new" && mv "$volume/role.conf.new" "$volume/role.conf"
}

settings() {
    if [ "$(settings_for "$1")" = "$(<"$volume/role.conf")" ]; then return; fi
    say "confirmed by: ${1:-itself alone}"
    write_settings "$1" && pg_ctl reload --pgdata="$PGDATA" --silent
}

# --- probes ----------------------------------------------------------------------------------------------------------

is_level() {
    look || return
    case "$role,$(here 'SELECT pg_is_in_recovery()')" in
        primary,[ft]) ;;                                # one that is not promoted yet will be in the next turn
        replica,t) streams || ! primary_answers ;;
        *) return 1 ;;
    esac
}

is_confirmed() {
    look || return
    [ "$role" = primary ] || [ "$(there "SELECT 1 FROM pg_stat_replication WHERE application_name = '$POD_NAME' AND sync_state = 'sync'
        AND NOT pg_is_in_recovery()")" = 1 ]
}

# --- backup ----------------------------------------------------------------------------------------------------------

dump() {
    pg_dumpall --host="$PRIMARY" --no-role-passwords --file="$backup/all.sql.new" &&
        mv "$backup/all.sql.new" "$backup/all.sql"
}

case "$1" in
    run) run ;;
    watch)
        trap 'exit 0' TERM INT
        sleep infinity &
        wait
        ;;
    is-level) is_level ;;
    is-confirmed) is_confirmed ;;
    dump) dump ;;
esac
