/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a process asks for, from the arguments of MPIX_File_set_encryption_map
 * or from defaults.
 */
#include "cryptmpio_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>

#include "opal/datatype/opal_convertor.h"

int ompi_common_cryptmpio_ask_algorithm(ompi_common_cryptmpio_ask_t *ask, const char *algorithm, opal_crypt_why_t *why)
{
    opal_aead_cipher_t cipher = OPAL_AEAD_AES_128_GCM;

    ask->encrypted = 0 != strcasecmp(algorithm, "plain");
    if (!ask->encrypted) {
        ask->block_bytes = 0;
        ask->label[0] = '\0';
        return OPAL_CRYPT_OK;
    }
    int rc = opal_cryptfile_algorithm_parse(algorithm, &cipher, why);
    ask->cipher = (int32_t) cipher;
    return rc;
}

/* A label was given: the file cannot have been meant to be plain. */
int ompi_common_cryptmpio_whole_algorithm(ompi_common_cryptmpio_ask_t *ask, const char *algorithm, opal_crypt_why_t *why)
{
    int rc = ompi_common_cryptmpio_ask_algorithm(ask, algorithm, why);

    return OPAL_CRYPT_OK != rc || ask->encrypted ? rc
           : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-algorithm-refused", "plain, for all of a file that has a label");
}

int ompi_common_cryptmpio_default_ask(ompi_common_cryptmpio_default_ask_t *bytes, const char *label, const char *algorithm, unsigned block_size,
                                      opal_crypt_why_t *why)
{
    *bytes = (ompi_common_cryptmpio_default_ask_t){.ask = {.extent = 1, .run_count = 1, .block_bytes = block_size}, .run = {0, 1, 0}};
    snprintf(bytes->ask.label, sizeof(bytes->ask.label), "%s", label);
    return ompi_common_cryptmpio_whole_algorithm(&bytes->ask, algorithm, why);
}

int ompi_common_cryptmpio_set_default_map(ompi_common_cryptmpio_file_t *state, const char *label, const char *algorithm,
                                          unsigned block_size)
{
    ompi_common_cryptmpio_default_ask_t bytes;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = ompi_common_cryptmpio_default_ask(&bytes, label, algorithm, block_size, &why);

    if (OPAL_CRYPT_OK != rc && 0 == state->fh->f_rank) {
        ompi_common_cryptmpio_show(state, &why);
    }
    if (OPAL_CRYPT_OK != rc) {          /* on all: they have rank 0's words */
        ompi_common_cryptmpio_abandon(state);
        return ompi_common_cryptmpio_error(rc, 0);
    }
    return ompi_common_cryptmpio_add_default(state, (const uint8_t *) &bytes, sizeof(bytes));
}

/* ---- the arguments of the call ---- */

static int from_info(ompi_common_cryptmpio_ask_t *ask, opal_info_t *info, bool *rest, opal_crypt_why_t *why)
{
    const ompi_common_cryptmpio_params_t *p = &ompi_common_cryptmpio_params;
    char text[80], algorithm[64];

    if (!ompi_common_cryptmpi_info_get(info, "crypt_key_label", ask->label, sizeof(ask->label))) {
        snprintf(ask->label, sizeof(ask->label), "%s", NULL == p->key_label ? "" : p->key_label);
    }
    ask->block_bytes = p->block_size;
    if (ompi_common_cryptmpi_info_get(info, "crypt_block_size", text, sizeof(text))) {
        (void) ompi_common_cryptmpio_block_parse(text, &ask->block_bytes);          /* already checked */
    }
    ask->once = ompi_common_cryptmpi_info_get(info, "crypt_repeat", text, sizeof(text)) && 0 == strcmp(text, "once");
    *rest = ompi_common_cryptmpi_info_get(info, "crypt_rest", text, sizeof(text)) && 0 == strcmp(text, "plain");
    if (!ompi_common_cryptmpi_info_get(info, "crypt_algorithm", algorithm, sizeof(algorithm))) {
        snprintf(algorithm, sizeof(algorithm), "%s", NULL == p->algorithm ? "" : p->algorithm);
    }
    return ompi_common_cryptmpio_ask_algorithm(ask, algorithm, why);
}

static int add_runs(const struct iovec *vector, uint32_t vectors, opal_cryptfile_run_t **runs, uint32_t *count)
{
    opal_cryptfile_run_t *more = realloc(*runs, ((size_t) *count + vectors + 1) * sizeof(*more));

    if (NULL == more) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    *runs = more;
    for (uint32_t i = 0; i < vectors; ++i) {
        if (vector[i].iov_len > 0) {
            more[(*count)++] = (opal_cryptfile_run_t){(uint64_t) (intptr_t) vector[i].iov_base, vector[i].iov_len, 0};
        }
    }
    return OPAL_CRYPT_OK;
}

/* Runs of one filetype, decoded as OMPIO decodes a view. */
static int runs_of(const ompio_file_t *fh, const ompi_datatype_t *filetype, opal_cryptfile_run_t **runs, uint32_t *count)
{
    enum { VECTORS = 128 };
    struct iovec vector[VECTORS];
    opal_convertor_t convertor;
    int rc = OPAL_CRYPT_OK;
    bool all = 0 == filetype->super.size;       /* or more than any map may have */

    *runs = NULL;
    *count = 0;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    if (OPAL_SUCCESS != opal_convertor_copy_and_prepare_for_send(fh->f_file_convertor, &filetype->super, 1, NULL, 0, &convertor)) {
        rc = OPAL_CRYPT_ERR_LIBRARY;
    }
    while (!all && OPAL_CRYPT_OK == rc) {
        uint32_t vectors = VECTORS;
        size_t bytes = SIZE_MAX;
        all = 0 != opal_convertor_raw(&convertor, vector, &vectors, &bytes);
        rc = add_runs(vector, vectors, runs, count);
        all = all || *count > OPAL_CRYPTFILE_RUNS_MAX;
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}

static bool is_type(const ompi_datatype_t *type) { return NULL != type && MPI_DATATYPE_NULL != type; }

/* Checked inside the collective, not before it: the others would wait for a process
 * that returned early. */
static int check_types(const ompi_common_cryptmpio_map_ask_t *of, ptrdiff_t *extent)
{
    size_t etype_size, filetype_size;
    ptrdiff_t lower;

    if (!is_type(of->etype) || !is_type(of->filetype) || NULL == of->datarep) {
        return MPI_ERR_ARG;
    }
    if (!opal_datatype_is_committed(&of->filetype->super)) {
        return MPI_ERR_TYPE;
    }
    opal_datatype_type_size(&of->etype->super, &etype_size);
    opal_datatype_type_size(&of->filetype->super, &filetype_size);
    ompi_datatype_get_extent(of->filetype, &lower, extent);
    return of->displacement < 0 ? MPI_ERR_ARG
           : 0 != strcasecmp(of->datarep, "native") ? MPI_ERR_UNSUPPORTED_DATAREP
           : 0 == etype_size || 0 != filetype_size % etype_size || *extent < 0 ? MPI_ERR_TYPE : MPI_SUCCESS;
}

/* The requests of this process, in the bytes that add_regions sends to the others; *packed: malloc'd. */
static int pack_regions(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_map_ask_t *of,
                        uint8_t **packed, size_t *count)
{
    ompi_common_cryptmpio_ask_t ask = {.displacement = (uint64_t) of->displacement};
    const ompi_common_cryptmpio_ask_t rest_ask = {.rest = 1};
    opal_cryptfile_run_t *runs = NULL;
    opal_crypt_why_t why = {.topic = NULL};
    ptrdiff_t extent;
    bool rest;
    int error = check_types(of, &extent);

    *packed = NULL;
    *count = 0;
    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_info_check(state, NULL == of->info ? NULL : &of->info->super);
    }
    if (MPI_SUCCESS != error) {
        return error;
    }
    int rc = from_info(&ask, NULL == of->info ? NULL : &of->info->super, &rest, &why);
    ask.extent = (uint64_t) extent;
    if (OPAL_CRYPT_OK == rc) {
        rc = runs_of(state->fh, of->filetype, &runs, &ask.run_count);
    }
    if (OPAL_CRYPT_OK == rc && ask.run_count > OPAL_CRYPTFILE_RUNS_MAX) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-map-size",
                               "a filetype of more runs than that");
    }
    if (OPAL_CRYPT_OK == rc) {
        size_t bytes = ask.run_count * sizeof(*runs);
        *packed = malloc(2 * sizeof(ask) + bytes);
        rc = NULL == *packed ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
        if (NULL != *packed && ask.run_count > 0) {
            memcpy(*packed, &ask, sizeof(ask));
            memcpy(*packed + sizeof(ask), runs, bytes);
            *count = sizeof(ask) + bytes;
        }
        if (NULL != *packed && rest) {
            memcpy(*packed + *count, &rest_ask, sizeof(rest_ask));
            *count += sizeof(rest_ask);
        }
    }
    if (OPAL_CRYPT_OK != rc && NULL != why.topic) {
        ompi_common_cryptmpio_show(state, &why);
    }
    free(runs);
    return ompi_common_cryptmpio_error(rc, 0);
}

/* sharedfp/individual was chosen while the file was plain, and would go on writing plain data
 * into files of its own.  What these hold is merged into the file now, as at closing. */
static int leave_individual(ompio_file_t *fh)
{
    if (NULL == fh->f_sharedfp || 0 != strcmp(fh->f_sharedfp_component->mca_component_name, "individual")) {
        return MPI_SUCCESS;
    }
    ompi_common_cryptmpio_notes_begin();
    int rc = fh->f_sharedfp->sharedfp_file_close(fh), error = ompi_common_cryptmpio_noted();
    fh->f_sharedfp = NULL;
    return ompi_common_cryptmpio_agree(fh, OMPI_SUCCESS == rc ? error : MPI_ERR_IO);
}

int ompi_common_cryptmpio_set_map(ompio_file_t *fh, const ompi_common_cryptmpio_map_ask_t *ask)
{
    ompi_common_cryptmpio_file_t *state = ompi_common_cryptmpio_module(fh)->state;
    uint8_t *packed;
    size_t count;
    int error = pack_regions(state, ask, &packed, &count);

    error = ompi_common_cryptmpio_add_regions(state, packed, count, error);
    free(packed);
    ompi_common_cryptmpio_deny(state, OMPI_CRYPTMPIO_DENIED_MAP, MPI_SUCCESS != error);
    if (state->encrypted) {             /* also by other processes, which this call could not follow */
        ompi_common_cryptmpio_hook(state);
        int left = leave_individual(fh);
        error = MPI_SUCCESS == error ? left : error;
    }
    return error;
}

const opal_cryptfile_map_t *ompi_common_cryptmpio_get_map(ompio_file_t *fh)
{
    const ompi_common_cryptmpio_file_t *state = ompi_common_cryptmpio_module(fh)->state;

    return NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);
}
