/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between the files of common/cryptmpio only.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_INTERNAL_H
#define OMPI_COMMON_CRYPTMPIO_INTERNAL_H

#include "cryptmpio.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"

/* The keystore of this process, opened when a file first needs it.  NULL: it cannot be
 * opened; the reason is reported once. */
opal_cryptfile_keystore_t *ompi_common_cryptmpio_keystore(void);

/* The provider for a cipher.  NULL: there is none; the reason is reported. */
const opal_aead_module_t *ompi_common_cryptmpio_provider(void *arg, opal_aead_cipher_t cipher);

/* ---- what went wrong ---- */

/* An MPI error code for a return code of the core. */
int ompi_common_cryptmpio_error(int rc, int error);

/* Report a refusal that has a topic, on one process. */
void ompi_common_cryptmpio_show(const ompi_common_cryptmpio_file_t *state, const opal_crypt_why_t *why);
/* Does it say that a key is missing, or cannot be had? */
bool ompi_common_cryptmpio_lacks_key(const opal_crypt_why_t *why);
/* The MPI error of rc, called right after it; first reports `why`, if that has a topic. */
int ompi_common_cryptmpio_told(const ompi_common_cryptmpio_file_t *state, int rc, const opal_crypt_why_t *why);
/* The same for an error of the storage, such as a full disk: reports `what` and the reason. */
int ompi_common_cryptmpio_stored(const ompi_common_cryptmpio_file_t *state, int rc, const char *what);

/* ---- collective helpers: over the file's communicator ---- */

/* ompi_common_cryptmpio_agree, and *any: is it set on at least one process? */
int ompi_common_cryptmpio_agree_any(const ompio_file_t *fh, int error, bool *any);
/* The same, and the largest of each value, of which no process has one less than 0. */
enum { OMPI_CRYPTMPIO_VALUES_MAX = 8 };
int ompi_common_cryptmpio_agree_values(const ompio_file_t *fh, int error, int *values, int count);
/* Among these values, one of which to know whether it was the same on every process: the largest and the smallest are.
 * Or so 62 bits of a hash. */
enum { OMPI_CRYPTMPIO_SAYS = 2, OMPI_CRYPTMPIO_SAYS_HASH = 4 };
void ompi_common_cryptmpio_say(int value, int says[OMPI_CRYPTMPIO_SAYS]);
bool ompi_common_cryptmpio_said_alike(const int says[OMPI_CRYPTMPIO_SAYS]);
void ompi_common_cryptmpio_say_hash(const uint8_t *hash, int says[OMPI_CRYPTMPIO_SAYS_HASH]);
bool ompi_common_cryptmpio_said_alike_hash(const int says[OMPI_CRYPTMPIO_SAYS_HASH]);
int ompi_common_cryptmpio_bcast(const ompio_file_t *fh, int root, void *bytes, size_t count);
int ompi_common_cryptmpio_bcast_flag(const ompio_file_t *fh, bool *flag);      /* of rank 0 */
/* An MPI error code from another process; MPI_ERR_INTERN if it is invalid.  (One too large is just unknown to MPI.) */
int ompi_common_cryptmpio_error_of_another(int error);
/* The lowest rank with the largest value; 0 if all values are 0.  Or what to agree on as the largest, and the rank that this is. */
int ompi_common_cryptmpio_lowest(const ompio_file_t *fh, int says);
int ompi_common_cryptmpio_rank_as_value(const ompio_file_t *fh, int says);
int ompi_common_cryptmpio_rank_of_value(const ompio_file_t *fh, int most);
/* For each entry, the lowest rank that a process has put there; f_size if none has. */
int ompi_common_cryptmpio_lowest_of_each(const ompio_file_t *fh, int *ranks, size_t count);
/* Every process's bytes, one after the other, less than 2 GiB together: *all is malloc'd,
 * lengths too. */
int ompi_common_cryptmpio_gather(const ompio_file_t *fh, const void *bytes, size_t count, uint8_t **all, int **counts);
int ompi_common_cryptmpio_max_bytes(const ompio_file_t *fh, uint8_t *values, size_t count);

/* Are there processes of the communicator on other nodes than this one? */
bool ompi_common_cryptmpio_apart(const ompio_file_t *fh);

/* The lowest rank on this node, of this one's job, from `rank` on; f_size: none.  No process is met for that. */
int ompi_common_cryptmpio_first_here(const ompio_file_t *fh, int rank);

/* Does the communicator span nodes while nothing encrypts messages? */
bool ompi_common_cryptmpio_exposed(const ompio_file_t *fh);

/* ---- data keys once a node (cryptmpio_node.c) ---- */

/* Local, before the file is opened any further. */
void ompi_common_cryptmpio_node_init(ompi_common_cryptmpio_file_t *state);
/* Local, once rank 0 has told all where to meet: decides which process `gives`, and which is `given`. */
void ompi_common_cryptmpio_node_begin(ompi_common_cryptmpio_file_t *state, uint64_t meeting);
/* Local, by all, after an agreement that follows node_begin: a process that is given asks the first one of its node. */
void ompi_common_cryptmpio_node_ask(ompi_common_cryptmpio_file_t *state);
/* Local, by all, after an agreement that follows node_ask, about the map that all have.  A process that gives answers with `keys`
 * (NULL: with none); one that is given gets them there, from it or from the keystore.  *has: there are keys.  The error is this
 * process's alone. */
int ompi_common_cryptmpio_node_keys(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys,
                                    bool *has);
/* Local: this process neither gives any more nor is given; no other one waits for it. */
void ompi_common_cryptmpio_node_end(ompi_common_cryptmpio_file_t *state);
/* Are there keys of all encrypted regions?  NULL: none. */
bool ompi_common_cryptmpio_has_all_keys(const opal_cryptfile_map_t *map, const opal_cryptfile_key_t *keys);

/* ---- steps of opening, used by set_map too ---- */

enum {
    OMPI_CRYPTMPIO_SCAN_PLAIN,
    OMPI_CRYPTMPIO_SCAN_ENCRYPTED,
    OMPI_CRYPTMPIO_SCAN_NEW,            /* ours to make: the maker's lock is held */
    OMPI_CRYPTMPIO_SCAN_REFUSED
};

/* What rank 0 found, and decided. */
typedef struct ompi_common_cryptmpio_scan {
    int kind, error;
    unsigned block_size;
    bool empty;                                 /* the file holds no byte */
    bool meant_plain;                           /* rank 0: fs_crypt_plain_paths has the name */
    bool asked;                                 /* each process: by its info, for an encrypted file */
    bool bare;                                  /* plain, empty, and its bytes would be refused, or are those of others */
    bool require;                               /* the parameter, as any process has it */
    bool seal, durable;                         /* the parameters, as rank 0 has them, for all */
    bool held;                                  /* rank 0 may encrypt with the label */
    bool sealed;                                /* there is a seal */
    uint64_t bytes;                             /* of an encrypted file */
    uint64_t meeting;                           /* a random number: where the processes of a node meet */
    opal_cryptfile_header_t beginning;          /* its header, if it is encrypted */
    uint64_t sizes[OPAL_CRYPTFILE_COPIES];
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 2], algorithm[64], root[2 * OPAL_CRYPT_HASH_BYTES + 2];
    uint8_t *copies[OPAL_CRYPTFILE_COPIES];     /* broadcast separately */
} ompi_common_cryptmpio_scan_t;

/* Rank 0: fill in what is there; `label` and `root`: what is wanted.  Waits for
 * others that are just creating the file. */
void ompi_common_cryptmpio_scan(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_scan_t *scan);

/* Steps of that (cryptmpio_begin.c).  Is it empty, or the remains of a maker that was killed or lost power: 512 zeros, or
 * a whole header in state 0? */
bool ompi_common_cryptmpio_is_unmade(ompi_common_cryptmpio_file_t *state);
/* Such a file is ours to make, with the maker's lock; true: scan again. */
bool ompi_common_cryptmpio_begin(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_scan_t *scan, int *error);
/* For a process that does not make it: wait for its maker; what one that was killed left is emptied, by who may write; true: scan
 * again. */
bool ompi_common_cryptmpio_clear(ompi_common_cryptmpio_file_t *state, int *error);

static inline bool ompi_common_cryptmpio_is_made(const ompi_common_cryptmpio_file_t *state)
{
    return 0 != state->beginning.geometry.group_bytes;
}

/* The bytes of a file that ends at `end` on the storage. */
static inline uint64_t ompi_common_cryptmpio_bytes(const ompi_common_cryptmpio_file_t *state, uint64_t end)
{
    return ompi_common_cryptmpio_is_made(state) ? opal_cryptfile_geometry_size(&state->beginning.geometry, end) : end;
}

/* Local, for an encrypted file: what this process can verify of the copies of its map.  Then the copy that counts, of
 * what any process has `seen`: 2 i, copy i is verified; 2 i + 1, it is refused.  *differ: another copy must be replaced. */
int ompi_common_cryptmpio_judge_copies(const ompi_common_cryptmpio_scan_t *scan, opal_cryptfile_keystore_t *keystore,
                                       opal_cryptfile_copy_state_t *states);
int ompi_common_cryptmpio_choose_copy(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan, const int *seen,
                                      opal_cryptfile_copy_state_t *states, int *best, bool *differ);
/* Rank 0 makes the copies agree; any process may ask for it. */
int ompi_common_cryptmpio_repair_copies(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan,
                                        const opal_cryptfile_copy_state_t *states, int best);

/* Collective, for a file that was plain when it was opened: claim its creation
 * (`making`), or join the processes that have created it since. */
int ompi_common_cryptmpio_scan_again(ompi_common_cryptmpio_file_t *state);

/* Collective: rank 0 writes the map instead of `now`; NULL: the file is made, or made anew. */
int ompi_common_cryptmpio_store(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *map);

/* After the map in use was replaced, which no stored map leads to any more: nothing is written with it, or read. */
void ompi_common_cryptmpio_close_regions(ompi_common_cryptmpio_file_t *state);

/* Rank 0, under the map's lock: `next` instead of `now`, in both places and the attribute.  *late: nothing is
 * written, because another process has changed a place since it had what this scan found there (NULL: since it had
 * `now`). */
int ompi_common_cryptmpio_change_map(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan,
                                     const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *next, bool *late);

/* Did the user say that a file of this name is plain, and only read (fs_crypt_plain_paths)? */
bool ompi_common_cryptmpio_meant_plain(const char *filename);

/* Must only one node write there at a time (fs_crypt_one_node_paths)? */
bool ompi_common_cryptmpio_one_node(const char *filename);

/* Local, after a refusal: delete the file if this very open created it (`amode`)
 * and it is empty. */
void ompi_common_cryptmpio_unmake(const ompi_common_cryptmpio_file_t *state, const char *filename, int amode);

/* Local: abandon the file's creation, if one is in progress. */
void ompi_common_cryptmpio_abandon(ompi_common_cryptmpio_file_t *state);

/* For ompi_common_cryptmpio_posix_on_wait. */
void ompi_common_cryptmpio_lock_waits(const char *file, pid_t holder, unsigned seconds, bool last);

/* Report a topic with the text of an errno; returns an MPI error. */
int ompi_common_cryptmpio_show_errno(const ompi_common_cryptmpio_file_t *state, const char *topic, int error);

/* Can this job have encrypted files at all?  Reports why not. */
bool ompi_common_cryptmpio_could_use(const ompio_file_t *fh);       /* says nothing */
int ompi_common_cryptmpio_usable(const ompi_common_cryptmpio_file_t *state);

/* Hand map and keys to the engine, compare what the processes may do, and
 * steer OMPIO accordingly.  Takes ownership of map and keys, also on error.  `error`: of this process, so far. */
int ompi_common_cryptmpio_use(ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t *map,
                              opal_cryptfile_key_t *keys, int error);

/* Local: mark the file as in use.  Reports why it cannot be used. */
int ompi_common_cryptmpio_take(ompi_common_cryptmpio_file_t *state);

/* Collective, with the file in use.  *alone: no other handle has it, or can until ompi_common_cryptmpio_together. */
int ompi_common_cryptmpio_alone(ompi_common_cryptmpio_file_t *state, bool *alone);
int ompi_common_cryptmpio_together(ompi_common_cryptmpio_file_t *state);

/* Collective: all processes use the file that rank 0 has taken; then they check that a lock of one
 * keeps out the others.  `error`: of this process, so far. */
int ompi_common_cryptmpio_join(ompi_common_cryptmpio_file_t *state, int error);
/* The same in two steps, each with an agreement (the second one only for writers).  After an error of the first one, the second is left out. */
int ompi_common_cryptmpio_join_begin(ompi_common_cryptmpio_file_t *state, int error);
int ompi_common_cryptmpio_join_end(ompi_common_cryptmpio_file_t *state, int error);

/* Local: rank 0 locks, and the others must find that it does. */
int ompi_common_cryptmpio_probe_begin(ompi_common_cryptmpio_file_t *state);
int ompi_common_cryptmpio_probe_lock(ompi_common_cryptmpio_file_t *state);
/* Collective: does what one process writes under a lock reach the others under
 * theirs?  Tried in a file beside it, when processes of several nodes may write. */
int ompi_common_cryptmpio_probe_bytes(ompi_common_cryptmpio_file_t *state);

/* Collective, after that, where nodes may see different bytes: leave a mark that others
 * find, and refuse a file that a node with which nothing was tried is writing. */
int ompi_common_cryptmpio_presence(ompi_common_cryptmpio_file_t *state);

/* The requests of one process, as bytes: each ask, then its runs; empty if there is none. */
typedef struct ompi_common_cryptmpio_ask {
    int32_t encrypted, cipher, once, rest;
    uint32_t block_bytes, run_count;
    uint64_t displacement, extent;
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 2];
} ompi_common_cryptmpio_ask_t;

/* For all bytes: those that add_regions takes. */
typedef struct ompi_common_cryptmpio_default_ask {
    ompi_common_cryptmpio_ask_t ask;
    opal_cryptfile_run_t run;
} ompi_common_cryptmpio_default_ask_t;

int ompi_common_cryptmpio_default_ask(ompi_common_cryptmpio_default_ask_t *bytes, const char *label, const char *algorithm, unsigned block_size,
                                      opal_crypt_why_t *why);

/* Collective: every process hands in its asks (or `error`, if it has none to give);
 * the map that holds them all is authenticated and used. */
int ompi_common_cryptmpio_add_regions(ompi_common_cryptmpio_file_t *state, const uint8_t *asks, size_t ask_bytes, int error);

/* Collective: keys and MACs of the regions from `old` on, for a map that is the same at every process; *keys is
 * malloc'd, or NULL if none is ours.  `error`: of this process, so far.  The result is not agreed on yet. */
int ompi_common_cryptmpio_seal_map(const ompi_common_cryptmpio_file_t *state, int error, opal_cryptfile_map_t *map, uint32_t old,
                                   opal_cryptfile_key_t **keys);

/* Collective: the same for a file that this communicator makes, and one ask, which all processes have. */
int ompi_common_cryptmpio_add_default(ompi_common_cryptmpio_file_t *state, const uint8_t *ask, size_t ask_bytes);

/* ---- a new file whose map rank 0 makes alone (cryptmpio_made.c) ---- */

/* Rank 0: makes the map for what `scan` wishes, which gets its bytes, as a copy in the attribute, if this process has the key. */
void ompi_common_cryptmpio_made_begin(ompi_common_cryptmpio_scan_t *scan, opal_cryptfile_copy_state_t *made);
/* Local: is it the right one?  Then, if this process `asks` its keystore, are its keys? */
int ompi_common_cryptmpio_made_judge(const ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan, bool asks,
                                     opal_cryptfile_copy_state_t *made);
/* Collective: takes the map and keys. */
int ompi_common_cryptmpio_made_open(ompi_common_cryptmpio_file_t *state, opal_cryptfile_copy_state_t *made);

/* Steps of that, local, from cryptmpio_map.c and cryptmpio_store.c. */
int ompi_common_cryptmpio_add_default_ask(opal_cryptfile_map_t *map, const ompi_common_cryptmpio_default_ask_t *ask, opal_crypt_why_t *why);
int ompi_common_cryptmpio_choose_geometry(opal_cryptfile_map_t *map);
int ompi_common_cryptmpio_check_ciphers(const opal_cryptfile_map_t *map, uint32_t old, const opal_cryptfile_key_t *keys);
int ompi_common_cryptmpio_check_fits(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map);
int ompi_common_cryptmpio_make(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map);

/* One region for all bytes, asked for by rank 0. */
int ompi_common_cryptmpio_set_default_map(ompi_common_cryptmpio_file_t *state, const char *label, const char *algorithm,
                                          unsigned block_size);

/* Fill in the cipher, or "plain"; ERR_CONFIG with `why`.  For a whole file: there must be a cipher. */
int ompi_common_cryptmpio_ask_algorithm(ompi_common_cryptmpio_ask_t *ask, const char *algorithm, opal_crypt_why_t *why);
int ompi_common_cryptmpio_whole_algorithm(ompi_common_cryptmpio_ask_t *ask, const char *algorithm, opal_crypt_why_t *why);

/* May this process encrypt with the label?  If no process may: ERR_ACCESS, with the reason. */
bool ompi_common_cryptmpio_holds(const char *label);
int ompi_common_cryptmpio_no_holder(const char *label, opal_crypt_why_t *why);

/* ---- what was asked for (cryptmpio_asked.c); the same on every process ---- */

/* An MPI error, for an info with an unknown key or invalid value of ours. */
int ompi_common_cryptmpio_info_check(const ompi_common_cryptmpio_file_t *state, opal_info_t *info);
/* An MPI error, for a file with data that is opened for writing and has no region with the job's label. */
int ompi_common_cryptmpio_has_label(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map,
                                    const ompi_common_cryptmpio_scan_t *scan);
bool ompi_common_cryptmpio_block_parse(const char *text, uint32_t *bytes);
/* In front of OMPIO's MPI_File_set_view, for every file. */
void ompi_common_cryptmpio_watch_views(ompi_common_cryptmpio_file_t *state);
/* At opening, of a file with a map: what the job wants. */
void ompi_common_cryptmpio_wished(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan);
/* Record that the program itself asked for these regions of the map. */
void ompi_common_cryptmpio_took(ompi_common_cryptmpio_file_t *state, const bool *asked);
/* Record that a request for encryption failed, or (`denied` false) that a later one succeeded. */
typedef enum {
    OMPI_CRYPTMPIO_DENIED_MAP = 1,
    OMPI_CRYPTMPIO_DENIED_VIEW = 2,
    OMPI_CRYPTMPIO_DENIED_INFO = 4
} ompi_common_cryptmpio_denied_t;
void ompi_common_cryptmpio_deny(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_denied_t by, bool denied);
/* Why bytes of a region (UINT32_MAX: of a plain file) are withheld from the program although no key
 * is missing; NULL: they are not. */
const char *ompi_common_cryptmpio_why_limited(const ompi_common_cryptmpio_file_t *state, bool writing, uint32_t region);

/* Collective, before anything is written: verify the file's seal, if it has one, and remove it.
 * With fs_crypt_seal, writes are tracked from now on. */
int ompi_common_cryptmpio_take_off_seal(ompi_common_cryptmpio_file_t *state);

/* Collective: from now on, reads must match the seal.  `root`: the
 * hash that the user kept, in hexadecimal digits, or "". */
int ompi_common_cryptmpio_demand_seal(ompi_common_cryptmpio_file_t *state, const char *root);

/* Collective.  owners[i]: the rank that seals region i, or checks its seal; -1: none needs to or, if that is allowed, none
 * can. */
int ompi_common_cryptmpio_seal_owners(const ompi_common_cryptmpio_file_t *state, bool all_needed, int *owners);

/* Collective: set how many processes do I/O in collective calls, and where each
 * one's part of the file ends. */
int ompi_common_cryptmpio_spread(ompio_file_t *fh, uint32_t block_bytes);
/* Wrap OMPIO's functions in ours. */
void ompi_common_cryptmpio_hook(ompi_common_cryptmpio_file_t *state);
/* Choose how OMPIO exchanges data, after every view.  MPI_ERR_UNSUPPORTED_OPERATION
 * if the component needed is not available. */
int ompi_common_cryptmpio_steer(const ompi_common_cryptmpio_file_t *state);

#endif
