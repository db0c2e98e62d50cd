/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The shared segment of a node: made by its leader (local rank 0), mapped by
 * the others, unlinked; and the flags in it.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_shm.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/runtime/opal_progress.h"

#define FLAG_BYTES 64
#define POLLS_A_PROGRESS 16     /* polling the sockets costs more than a neighbor's turn */
#define LEAST_DATA ((size_t) 256 << 10)
#define NAME_BYTES 64           /* an empty name: the leader has no segment */
#define LARGEST 4               /* a process may own this many segments of the largest size */

static size_t made_bytes;       /* atomic */

/* ---- flags ---- */

static uint64_t *flag_of(ompi_coll_cryptag_shm_t *shm, int local)
{
    return (uint64_t *) (void *) (shm->map + (size_t) local * FLAG_BYTES);
}

void ompi_coll_cryptag_shm_arrive(ompi_coll_cryptag_shm_t *shm, uint64_t phase)
{
    __atomic_store_n(flag_of(shm, shm->local), phase, __ATOMIC_RELEASE);
}

static uint64_t *length_of(ompi_coll_cryptag_shm_t *shm, int local)
{
    return flag_of(shm, local) + 1;
}

void ompi_coll_cryptag_shm_say(ompi_coll_cryptag_shm_t *shm, uint64_t bytes)
{
    *length_of(shm, shm->local) = bytes;
}

uint64_t ompi_coll_cryptag_shm_said(ompi_coll_cryptag_shm_t *shm, int local)
{
    return *length_of(shm, local);
}

void ompi_coll_cryptag_shm_await(ompi_coll_cryptag_shm_t *shm, int local, uint64_t phase)
{
    const uint64_t *flag = flag_of(shm, local);
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_COLLECTIVE, .peer = OPAL_CRYPT_STATUS_ANY,
                                            .text = "coll/cryptag, shared memory"};
    bool entered = false;

    for (unsigned polls = 1; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < phase; polls++) {
        if (0 != polls % POLLS_A_PROGRESS) {
            sched_yield();
            continue;
        }
        if (!entered) {
            ompi_common_cryptmpi_enter(&inside);
            entered = true;
        }
        opal_progress();
    }
    if (entered) {
        ompi_common_cryptmpi_leave(&inside);
    }
}

void ompi_coll_cryptag_shm_await_all(ompi_coll_cryptag_shm_t *shm, uint64_t phase)
{
    for (int i = 0; i < shm->here; i++) {
        ompi_coll_cryptag_shm_await(shm, i, phase);
    }
}

/* ---- making and mapping ---- */

static bool map_segment(ompi_coll_cryptag_shm_t *shm, int fd, size_t map_bytes)
{
    void *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (MAP_FAILED == map) {
        return false;
    }
    shm->map = map;
    shm->map_bytes = map_bytes;
    shm->data = shm->map + (size_t) shm->here * FLAG_BYTES;
    shm->phase = shm->turn_phase = 0;
    shm->turn = 0;
    return true;
}

/* Is there room for it, besides the process's others?  Half of /dev/shm stays free for other users. */
static bool reserve_bytes(int fd, size_t map_bytes)
{
    const size_t all = __atomic_add_fetch(&made_bytes, map_bytes, __ATOMIC_RELAXED);
    struct statvfs device;

    if (all / LARGEST <= mca_coll_cryptag_component.shm_max && 0 == fstatvfs(fd, &device)
        && (0 == device.f_blocks || device.f_bavail >= map_bytes / device.f_frsize + device.f_blocks / 2)) {    /* 0: no bound */
        return true;
    }
    __atomic_sub_fetch(&made_bytes, map_bytes, __ATOMIC_RELAXED);
    return false;
}

static void return_bytes(size_t map_bytes) { __atomic_sub_fetch(&made_bytes, map_bytes, __ATOMIC_RELAXED); }

/* Allocate memory now: running out of it later would be a SIGBUS.  Signals are blocked, as one would interrupt this. */
static bool allocate(int fd, size_t map_bytes)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = posix_fallocate(fd, 0, (off_t) map_bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0 == rc;
}

static bool make_segment(ompi_coll_cryptag_shm_t *shm, size_t map_bytes, char name[NAME_BYTES])
{
    uint8_t random[8];
    bool made;
    int fd;

    opal_crypt_random(random, sizeof(random));
    memset(name, 0, NAME_BYTES);
    snprintf(name, NAME_BYTES, "/ompi-crypt-%02x%02x%02x%02x%02x%02x%02x%02x", random[0], random[1],
             random[2], random[3], random[4], random[5], random[6], random[7]);
    fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
        name[0] = '\0';
        return false;
    }
    made = reserve_bytes(fd, map_bytes);
    if (made && !(allocate(fd, map_bytes) && map_segment(shm, fd, map_bytes))) {
        return_bytes(map_bytes);
        made = false;
    }
    close(fd);
    if (!made) {
        shm_unlink(name);
        name[0] = '\0';
    }
    return made;
}

static bool join_segment(ompi_coll_cryptag_shm_t *shm, size_t map_bytes, const char *name)
{
    struct stat stat;
    bool joined;
    int fd;

    if ('\0' == name[0] || (fd = shm_open(name, O_RDWR, 0)) < 0) {
        return false;
    }
    joined = 0 == fstat(fd, &stat) && S_ISREG(stat.st_mode) && geteuid() == stat.st_uid
             && 0600 == (stat.st_mode & 07777) && (off_t) map_bytes == stat.st_size
             && map_segment(shm, fd, map_bytes);
    close(fd);
    return joined;
}

static void drop_segment(ompi_coll_cryptag_shm_t *shm)
{
    if (NULL != shm->map) {
        munmap(shm->map, shm->map_bytes);
        if (0 == shm->local) {                  /* we made it */
            return_bytes(shm->map_bytes);
        }
        shm->map = NULL;
        shm->data_bytes = 0;
    }
}

/* 1. the others announce themselves      2. the leader makes it and sends the name
 * 3. the others map it and confirm       4. the leader removes the name
 * If the job is killed, a named segment stays, so the leader makes it only when no rank is late any more. */
static bool replace_segment(ompi_coll_cryptag_call_t *call, ompi_coll_cryptag_shm_t *shm, size_t map_bytes)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    char name[NAME_BYTES] = "";
    ompi_coll_cryptag_part_t named = { (uint8_t *) name, NAME_BYTES, 0 };
    uint8_t *answers = ompi_coll_cryptag_scratch(call, (size_t) shm->here);
    ompi_coll_cryptag_part_t *parts = ompi_coll_cryptag_scratch(call, (size_t) shm->here * sizeof(*parts));
    bool have;

    for (int i = 0; i < shm->here; i++) {
        answers[i] = 0;
        parts[i] = (ompi_coll_cryptag_part_t) { &answers[i], 1, 0 };
    }
    if (0 != topo->local) {
        int leader = ompi_coll_cryptag_rank_at(topo, topo->node, 0);

        ompi_coll_cryptag_send(call, leader, OMPI_COLL_CRYPTAG_PLAIN, &parts[0], 1);
        ompi_coll_cryptag_recv(call, leader, OMPI_COLL_CRYPTAG_PLAIN, &named, 1);
        ompi_coll_cryptag_wait(call);
        name[NAME_BYTES - 1] = '\0';
        have = join_segment(shm, map_bytes, name);
        answers[0] = have;
        ompi_coll_cryptag_send(call, leader, OMPI_COLL_CRYPTAG_PLAIN, &parts[0], 1);
        ompi_coll_cryptag_wait(call);
        return have;
    }
    for (int i = 1; i < shm->here; i++) {
        ompi_coll_cryptag_recv(call, ompi_coll_cryptag_rank_at(topo, topo->node, i), OMPI_COLL_CRYPTAG_PLAIN, &parts[i], 1);
    }
    ompi_coll_cryptag_wait(call);
    have = make_segment(shm, map_bytes, name);
    for (int i = 1; i < shm->here; i++) {
        int rank = ompi_coll_cryptag_rank_at(topo, topo->node, i);
        ompi_coll_cryptag_recv(call, rank, OMPI_COLL_CRYPTAG_PLAIN, &parts[i], 1);
        ompi_coll_cryptag_send(call, rank, OMPI_COLL_CRYPTAG_PLAIN, &named, 1);
    }
    ompi_coll_cryptag_wait(call);
    if (have) {
        shm_unlink(name);
    }
    for (int i = 1; i < shm->here; i++) {
        have = have && 1 == answers[i];
    }
    return have;
}

static ompi_coll_cryptag_shm_t *shm_of(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_module_t *module = call->module;

    if (NULL == module->shm) {
        module->shm = calloc(1, sizeof(*module->shm));
        if (NULL == module->shm) {
            ompi_coll_cryptag_no_memory(call->comm, sizeof(*module->shm));
        }
        module->shm->here = ompi_coll_cryptag_node_size(call->topo, call->topo->node);
        module->shm->local = call->topo->local;
    }
    return module->shm;
}

bool ompi_coll_cryptag_shm_ensure(ompi_coll_cryptag_call_t *call, size_t bytes)
{
    ompi_coll_cryptag_shm_t *shm = shm_of(call);
    const ompi_coll_cryptag_metrics_t before = call->metrics;
    size_t data_bytes = LEAST_DATA;
    bool have;

    /* what follows is the same at every rank, as bytes, data_bytes and refused are */
    if (bytes > mca_coll_cryptag_component.shm_max || (0 != shm->refused && bytes >= shm->refused)) {
        return false;
    }
    if (bytes <= shm->data_bytes) {
        return true;
    }
    while (data_bytes < bytes) {
        data_bytes *= 2;
    }
    data_bytes = data_bytes > mca_coll_cryptag_component.shm_max ? mca_coll_cryptag_component.shm_max : data_bytes;
    drop_segment(shm);
    have = replace_segment(call, shm, (size_t) shm->here * FLAG_BYTES + data_bytes);
    have = 0 == ompi_coll_cryptag_agree(call, have ? 0 : 1, 0);
    if (have) {
        shm->data_bytes = data_bytes;
    } else {
        drop_segment(shm);
        shm->refused = bytes;
    }
    call->metrics = before;
    return have;
}

void ompi_coll_cryptag_shm_free(ompi_coll_cryptag_shm_t *shm)
{
    if (NULL != shm) {
        drop_segment(shm);
        free(shm);
    }
}
