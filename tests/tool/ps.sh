# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# ps.sh PART...: `mpicrypt ps` explains jobs of two processes that hang, each by one sentence of one command, whoever
# seals: nobody has sent (sender, probe), the tag differs (tag, request), a collective that one is missing from
# (barrier), a peer that is stopped (stopped), both on one node (node).  Only pml/crypt: a key that never comes (key).  Only
# btl/crypt: a connection that is not answered (first, away), a peer that takes nothing (take).  accept: where nothing
# is seen to go on, it is not said that nothing looks wrong.  hostile: what is no page is refused and named, and
# the pages of a job that ended are removed.
set -eu
. "$SRC/tests/lib.sh"
python3 -c pass || skip "python3 is missing"

cluster_up 2
program=$(mpi_program tool hang)
cat > "$CASE_DIR/rsh" <<END
#!/bin/sh
[ "\$1" != down ] || exit 255
[ "\${1#talks}" = "\$1" ] || { yes "what somebody's start-up script says" ; exit; }
exec "$SRC/tests/vcluster" agent "\$@"
END
chmod +x "$CASE_DIR/rsh"

after=1 before=
# look ARG...: mpicrypt ps of both nodes, from node0, into $CASE_DIR/seen.
look() {
    status=0
    vcluster exec node0 $before "$PREFIX/bin/mpicrypt" ps --after "$after" --rsh "$CASE_DIR/rsh" --host 'node[0-1]' "$@" \
        > "$CASE_DIR/seen" 2> "$CASE_DIR/said" || status=$?
}

# hang MODE [OPTION...]: the job, in the background.
where=(--map-by node)
hang() {
    local mode=$1; shift
    echo "+ hang $mode"
    rm -f "$CASE_DIR"/pid.*
    vcluster mpirun -n 2 "${where[@]}" "$@" "$program" "$mode" "$CASE_DIR/pid" > "$CASE_DIR/job" 2>&1 < /dev/null &
    job=$!
    until [ -s "$CASE_DIR/pid.0" ] && [ -s "$CASE_DIR/pid.1" ]; do
        kill -0 $job 2>/dev/null || fail "the job ended: $(cat "$CASE_DIR/job")"
        sleep 0.1
    done
}

# end: kill its ranks.
end() {
    kill -KILL "$(cat "$CASE_DIR/pid.0")" "$(cat "$CASE_DIR/pid.1")"
    wait $job || true
}

# explains REGEX...: until ps has a line for each of them.
explains() {
    local expression good=
    until [ -n "$good" ]; do
        kill -0 $job 2>/dev/null || fail "the job ended: $(cat "$CASE_DIR/job" "$CASE_DIR/seen")"
        look
        good=yes
        for expression in "$@"; do
            grep -qE -- "$expression" "$CASE_DIR/seen" || good=
        done
        cp "$CASE_DIR/seen" "$CASE_DIR/last"
    done
    cat "$CASE_DIR/seen" "$CASE_DIR/said"
    [ $status = 1 ] || fail "status $status"
}

# goes_on: rank 0 is let go, and then nothing looks wrong.
goes_on() {
    kill -CONT "$(cat "$CASE_DIR/pid.0")"
    after=10                    # on a machine with much to do they are not heard of every second
    until look; [ $status = 0 ]; do :; done
    grep -q ": 2 of 2 processes seen: nothing looks wrong\$" "$CASE_DIR/seen" || fail "it goes on: $(cat "$CASE_DIR/seen")"
    after=1
    end
}

# What a page says of messages that were not sent: pml/crypt counts them, ob1 is asked what has arrived.
if [ "${OMPI_MCA_crypt_transport:-}" = pml ]; then
    over=pml
    sealed='  pml/crypt seals what leaves a node, over ob1 (crypt_transport=pml); authentication psk, keys X25519, AES-128-GCM'
    nothing() { printf '; rank %s has sent nothing to it$' "$1"; }
    other_tag='; rank 0 has sent it 1 message that it has not received: tag 5$'
else
    over=btl
    sealed='  btl/crypt seals what leaves a node, over TCP (TCP is the network); authentication psk, keys X25519.*, AES-128-GCM'
    nothing() { printf '; no other message from it has arrived$'; }
    other_tag='; a message of another tag is queued: rank 0, tag 5$'
    after=2                     # both have to be heard of within this time
fi

part_sender() {
    hang sender
    explains "rank 1 \(node1\) has waited [0-9]+ s in a receive from rank 0, tag 7$(nothing 0)" \
             "rank 0 \(node0\) has waited [0-9]+ s in a receive from rank 1, tag 6$(nothing 1)"
    end
}

part_probe() {
    hang probe
    explains 'rank 1 \(node1\) has waited [0-9]+ s in a probe for a message from rank 0, tag 7' \
             'rank 0 \(node0\) has waited [0-9]+ s in a probe for a message from any rank, any tag'
    end
}

part_tag() {
    hang tag
    after=5                     # a page that is a second old would say something else
    explains "rank 1 \(node1\) has waited [0-9]+ s in a receive from rank 0, tag 6$other_tag" \
             "rank 0 \(node0\) has waited [0-9]+ s in a receive from rank 1, tag 7$(nothing 1)"
    grep -q -- "^$sealed\$" "$CASE_DIR/seen" || fail "who seals: $(cat "$CASE_DIR/seen")"
    look --all
    grep -qE 'rank 0 on node0: process [0-9]+, running, state [RS]' "$CASE_DIR/seen" || fail "--all: $(cat "$CASE_DIR/seen")"
    look --json
    python3 - "$CASE_DIR/seen" $over <<'END' || fail "--json: $(cat "$CASE_DIR/seen")"
import json, sys
job, = json.load(open(sys.argv[1]))
over = sys.argv[2]
by_rank = {p["rank"]: p for p in job["processes"]}
wait = by_rank[1]["waits"][0]
assert job["ranks"] == 2 and len(job["wrong"]) == 2, job
assert (wait["kind"], wait["process"], wait["tag"], wait["instead"]["tag"]) == ("receive", 0, 6, 5), wait
assert over == "btl" or [p["sent"] for p in by_rank[0]["peers"] if p["rank"] == 1] == [1]
assert by_rank[0]["transport"] == over and by_rank[0]["protection"].startswith(over + "/crypt seals"), job
END
    # A node that cannot be reached is named; this node alone knows one side.
    look --host node0,down
    [ $status = 3 ] && grep -q '^mpicrypt ps: down: it cannot be looked at' "$CASE_DIR/said" || fail "down: $(cat "$CASE_DIR/said")"
    grep -q 'no page of rank 1 was seen' "$CASE_DIR/seen" || fail "down: $(cat "$CASE_DIR/seen")"
    # Two that talk, and never stop of themselves.
    look --host 'talks[1-2],node1'
    [ $status = 3 ] && [ "$(grep -c "^mpicrypt ps: talks[12]: it cannot be looked at (what it answers is not" "$CASE_DIR/said")" = 2 ] ||
        fail "talks: $(cat "$CASE_DIR/said")"
    grep -q 'no page of rank 0 was seen' "$CASE_DIR/seen" || fail "talks: $(cat "$CASE_DIR/seen")"
    # Started where nobody waits for children.
    before='env --ignore-signal=CHLD'
    look
    before=
    grep -q 'rank 1' "$CASE_DIR/seen" && ! grep -q 'cannot be looked at' "$CASE_DIR/said" || fail "SIGCHLD ignored: $status, $(cat "$CASE_DIR/said")"
    end
}

part_request() {
    hang request
    explains "rank 1 \(node1\) has waited [0-9]+ s in a receive from rank 0, tag 6$other_tag"
    end
}

# In 5.0 the message that is missing is one of an all-reduce, by its tag.
part_barrier() {
    hang barrier
    explains 'rank 0 \(node0\) has waited [0-9]+ s in a collective \((barrier|all-reduce)\), for a message from rank 1' \
             'rank 1 \(node1\) has waited [0-9]+ s in a receive from rank 0, tag 6;'
    end
}

part_stopped() {
    hang stopped
    kill -STOP "$(cat "$CASE_DIR/pid.0")"
    explains 'rank 0 \(node0\) is stopped \(state T\): .kill -CONT [0-9]+. lets it go on$' \
             'rank 1 \(node1\) has waited [0-9]+ s in a receive from rank 0, tag 1;.* rank 0 is stopped$'
    goes_on
}

part_key() {
    sed -n "/^cat > .*silent.c/,/^END\$/p" "$SRC/tests/shell/waits.sh" | sed '1d;$d' > "$CASE_DIR/silent.c"
    must in_variant gcc -shared -fPIC -o "$CASE_DIR/silent.so" "$CASE_DIR/silent.c" -ldl -lpthread
    hang sender -x LD_PRELOAD="$CASE_DIR/silent.so" -x SILENT_IN=get
    explains 'rank 1 \(node1\) has waited [0-9]+ s in its first contact with rank 0, for its record of keys'
    end
}

part_first() {
    hang first
    explains '^  rank 0 \(node0\) has waited [0-9]+ s in its first contact with rank 1, for a connection \(it does not answer the handshake\); rank 1 has not been inside MPI for [0-9]+ s$' \
             '^  rank 1 \(node1\) has been outside MPI for [0-9]+ s, and others wait for it \(process [0-9]+, state S\)$'
    end
}

part_away() {
    hang away
    explains '^  rank 0 \(node0\) has waited [0-9]+ s in a receive from rank 1, tag 7; .*; rank 1 has not been inside MPI for [0-9]+ s$' \
             '^  rank 1 \(node1\) has been outside MPI for [0-9]+ s, and others wait for it \(process [0-9]+, state S\)$'
    look --all
    grep -qE 'rank 1: sealed, sent [0-9]+ records, received [0-9]+; not taken yet: 0 bytes$' "$CASE_DIR/seen" || fail "--all: $(cat "$CASE_DIR/seen")"
    grep -qE '1 connections; pending: 1 receives, 0 sends; last message ' "$CASE_DIR/seen" || fail "--all: $(cat "$CASE_DIR/seen")"
    end
}

part_take() {
    hang take
    explains '^  rank 0 \(node0\) has waited [0-9]+ s for rank 1 to take [0-9]+ bytes that were sent to it; rank 1 has not been inside MPI for'
    look --json
    python3 - "$CASE_DIR/seen" <<'END' || fail "--json: $(cat "$CASE_DIR/seen")"
import json, sys
job, = json.load(open(sys.argv[1]))
by_rank = {p["rank"]: p for p in job["processes"]}
wait, peer = by_rank[0]["waits"][0], by_rank[0]["peers"][0]
assert by_rank[0]["transport"] == by_rank[1]["transport"] == "btl" and (wait["kind"], wait["process"]) == ("take", 1), job
assert peer["state"] == "sealed" and peer["sent"] > 50 and 0 < peer["ahead_bytes"] == wait["bytes"], peer
END
    end
}

# Two of one node wait for each other.
part_node() {
    where=(--host node0:2)
    hang sender
    explains 'rank 1 \(node0\) has waited [0-9]+ s in a receive from rank 0, tag 7' \
             'rank 0 \(node0\) has waited [0-9]+ s in a receive from rank 1, tag 6'
    end
    hang send
    explains 'rank 0 \(node0\) has waited [0-9]+ s in a send to rank 1, tag 5 \(16777216 bytes'
    end
    where=(--map-by node)
}

# In the launcher's hands: some series show that, and the others must not say that all is well.
part_accept() {
    hang accept
    until look; [ $status != 0 ]; do :; done
    cat "$CASE_DIR/seen" "$CASE_DIR/said"
    ! grep -q 'nothing looks wrong' "$CASE_DIR/seen" && [ ! -s "$CASE_DIR/said" ] || fail "status $status: $(cat "$CASE_DIR/said")"
    grep -qE 'has waited [0-9]+ s|not seen: whether [12] process' "$CASE_DIR/seen" || fail "it does not say what it sees"
    end
}

# plant NAME: standard input becomes that file in node0's /dev/shm.
plant() { vcluster exec node0 sh -c "umask 077; cat > '/dev/shm/$1'"; }

# refuses NAME WHY
refuses() {
    look
    [ $status = 3 ] || fail "$1: status $status"
    grep -F "$1" "$CASE_DIR/said" | grep -qF "this page is refused: $2" || fail "$1: $(cat "$CASE_DIR/said")"
    vcluster exec node0 rm "/dev/shm/$1"
}

part_hostile() {
    local uid page prefix
    hang sender
    uid=$(vcluster exec node0 id -u)
    prefix=ompi-crypt-status.$uid.x
    page=$(vcluster exec node0 sh -c "ls /dev/shm/ompi-crypt-status.*.$(cat "$CASE_DIR/pid.0")")
    vcluster exec node0 cat "$page" > "$CASE_DIR/page"
    [ "$(vcluster exec node0 stat -c %a "$page")" = 600 ] || fail "its mode"
    head -c 100 "$CASE_DIR/page" | plant "$prefix.0.1"; refuses "$prefix.0.1" "it has 100 bytes"
    vcluster exec node0 ln -s "$page" "/dev/shm/$prefix.0.2"; refuses "$prefix.0.2" "it is a symbolic link"
    vcluster exec node0 mkfifo -m 600 "/dev/shm/$prefix.0.3"; refuses "$prefix.0.3" "it is not a regular file"
    plant "$prefix.0.4" < "$CASE_DIR/page"; vcluster exec node0 chmod 644 "/dev/shm/$prefix.0.4"
    refuses "$prefix.0.4" "its mode is 0644"
    if [ "$(id -u)" = 0 ] && vcluster exec node0 true; then
        plant "$prefix.0.5" < "$CASE_DIR/page"; vcluster exec node0 chown 4711 "/dev/shm/$prefix.0.5"
        refuses "$prefix.0.5" "it belongs to user id 4711"
    fi
    head -c "$(stat -c %s "$CASE_DIR/page")" /dev/zero | tr '\0' '\377' | plant "$prefix.0.6"
    refuses "$prefix.0.6" "it is no status page"
    # Its own job says that it is dead: there is nothing in it for a terminal.
    python3 - "$CASE_DIR/page" <<'END' | plant "$prefix.0.7"
import sys
page = bytearray(open(sys.argv[1], "rb").read())
host = 8 + 8 + 8 + 8 + 8 + 256
page[host:host + 8] = b"\x1b[31m\x07\n\0"
sys.stdout.buffer.write(page)
END
    explains 'rank 0 \(.\[31m..\) '
    ! grep -q "$(printf '\033')" "$CASE_DIR/seen" || fail "an escape sequence"
    end
    echo "+ stale pages"
    until [ -z "$(for node in node0 node1; do vcluster exec $node sh -c 'ls /dev/shm' | grep ompi-crypt-status; done)" ]; do
        look
        sleep 0.1
    done
    grep -q '^no encrypted job was seen$' "$CASE_DIR/seen" || look
    [ $status = 0 ] && grep -q '^no encrypted job was seen$' "$CASE_DIR/seen" || fail "stale: $status $(cat "$CASE_DIR/seen" "$CASE_DIR/said")"
}

for part in "$@"; do
    part_$part
done
