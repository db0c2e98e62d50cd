#!/bin/sh
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# munge.sh HOST...: set up MUNGE on these hosts, as root, through ssh, for
# crypt_auth=munge.  Every host gets the same new key.  The daemon must be
# installed on them (Debian: munge).  Sites that use it for Slurm are done.
#
#   RSH      program that runs a command on a host (ssh)
#   KEY      file of the key on the hosts (/etc/munge/munge.key)
#   OWNER    owner of that file (munge:munge)
#   RESTART  command that restarts the daemon (systemctl restart munge)
set -eu
[ $# -gt 0 ] || { sed -n '4,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0" >&2; exit 2; }
: "${RSH:=ssh}" "${KEY:=/etc/munge/munge.key}" "${OWNER:=munge:munge}" "${RESTART:=systemctl restart munge}"

# 128 random bytes, in a file of mode 0600; a shell variable would lose zero bytes.
key=$(mktemp)
trap 'rm -f "$key"' EXIT
trap 'exit 1' HUP INT TERM
dd if=/dev/urandom of="$key" bs=128 count=1 2>/dev/null

for host; do
    # The key goes through standard input; it is never an argument.
    $RSH "$host" "umask 077; cat > '$KEY.new' && chmod 400 '$KEY.new' && chown '$OWNER' '$KEY.new' &&
                 mv -f '$KEY.new' '$KEY' && $RESTART" < "$key"
    echo "$host: a new munge key, and its daemon started anew"
done
echo "Check it with: mpicrypt doctor --mpirun 'mpirun --hostfile HOSTS'"
