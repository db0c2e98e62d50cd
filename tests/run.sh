#!/usr/bin/env bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# run.sh - install what is missing, build, and run the tests.
#
#   tests/run.sh [--ci | --full | --soak] [--sanitize] [--list] [--no-packages] [CASE...]
#
#   (nothing)      the default tier: about 15 minutes on two processors
#   --ci           the default tier and everything tagged "ci": what CI runs
#   --full         both, and everything tagged "full", all series
#   --soak         everything tagged "soak": hours
#   --sanitize     also unit tests and the cases tagged "sanitize", with
#                  AddressSanitizer and UndefinedBehaviorSanitizer
#   --list         print the cases, each with what protects its messages, and end
#   --no-packages  do not install anything
#   CASE...        only these, of any tier (shell patterns: 'mpi/p2p_*')
#
# Works on a bare Debian 12, 13 or forky as root (packages, virtual clusters); as somebody
# else where the packages are there and user namespaces are allowed, on Debian 12
# without Open MPI 5.0 and 6.0.  Debian 13's own is 5.0, and forky's 6.0: there the cases without
# a suffix run on it, and those that need an older one are skipped.  Builds outside of the source tree, under
# ${XDG_CACHE_HOME:-/var/cache}/ompi-crypt (OMPI_CRYPT_TEST_DIR overrides it).
# OMPI_CRYPT_CONFIGURE has more switches for configure, for this system's Open MPI.
# How to add a test: tests/README.rst.
set -uo pipefail
shopt -s inherit_errexit

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export SRC LC_ALL=C.UTF-8
. "$SRC/tests/lib.sh"
. "$SRC/tests/build.sh"
. "$SRC/tests/cases.sh"

usage() { sed -n '4,/^set -uo/{/^set -uo/d;s/^# \{0,1\}//;p}' "$SRC/tests/run.sh" >&2; exit 2; }

tier=default sanitize=no list=no packages=yes patterns=()
while (($#)); do
    case $1 in
        --ci|--full|--soak) tier=${1#--} ;;
        --sanitize)    sanitize=yes ;;
        --list)        list=yes ;;
        --no-packages) packages=no ;;
        -*)            usage ;;
        *)             patterns+=("$1") ;;
    esac
    shift
done

read_cases
select_cases "$tier" "$sanitize" ${patterns[@]+"${patterns[@]}"}
if [ "$list" = yes ]; then
    for case in "${SELECTED[@]}"; do
        printf '%-44s %s\n' "$case" "${CASE_TRANSPORT[$case]}"
    done
    exit 0
fi

exec </dev/null
[ "$packages" = no ] || install_packages tests $([[ $tier = @(default|ci) ]] || echo full)
prepare_directories
echo "this system's Open MPI: $NATIVE"
begin=$SECONDS
run_lanes

if [ ${#FAILED[@]} -gt 0 ]; then
    echo
    echo "failed, and how to run each again:"
    printf '    tests/run.sh %s\n' "${FAILED[@]}"
fi
echo
echo "$(duration $((SECONDS - begin))) in $WORK"
echo "$(counted pass) passed, ${#FAILED[@]} failed, $(counted skip) skipped"
[ ${#FAILED[@]} -eq 0 ]
