// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "ag_sample.h"

// The symbol tables that are in the files are enough: never ask a server for debug information.
static int find_no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			     const char *file, const char *debuglink, GElf_Word crc,
			     char **out_path)
{
	(void)module, (void)user, (void)name, (void)base;
	(void)file, (void)debuglink, (void)crc, (void)out_path;
	return -1;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void name_user(Dwfl *dwfl, uint64_t ip, struct ag_sample_function *out)
{
	Dwfl_Module *module = dwfl ? dwfl_addrmodule(dwfl, ip) : NULL;
	const char *file, *symbol;
	GElf_Off offset = 0;
	Dwarf_Addr start = 0;
	GElf_Sym sym;

	if (!module) {
		snprintf(out->file, sizeof(out->file), "0x%" PRIx64, ip);
		return;
	}
	file = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	symbol = dwfl_module_addrinfo(module, ip, &offset, &sym, NULL, NULL, NULL);
	// A stripped object offers the nearest exported name, which need not be the function.
	if (symbol && (sym.st_size == 0 || offset < sym.st_size)) {
		snprintf(out->function, sizeof(out->function), "%s", symbol);
		snprintf(out->file, sizeof(out->file), "%s", last_part(file ? file : "?"));
	} else {
		snprintf(out->file, sizeof(out->file), "%.28s+0x%" PRIx64,
			 last_part(file ? file : "?"), ip - start);
	}
}

// The nearest symbol below each kernel address, in one pass over the list, which is long.
static void find_kernel(const struct ag_sample_set *set, char out[][AG_SAMPLE_NAME_BYTES])
{
	uint64_t best[AG_SAMPLE_MAX] = {0}, address;
	char line[256], name[64];
	FILE *f = fopen("/proc/kallsyms", "re");
	uint32_t i;

	while (f && fgets(line, sizeof(line), f)) {
		// Addresses read as 0 where the right to see them is missing.
		if (sscanf(line, "%" SCNx64 " %*c %63s", &address, name) != 2 || address == 0)
			continue;
		for (i = 0; i < set->n_samples; i++) {
			if (address > set->samples[i].ip || address < best[i])
				continue;
			best[i] = address;
			snprintf(out[i], AG_SAMPLE_NAME_BYTES, "%.47s", name);
		}
	}
	if (f)
		fclose(f);
}

static bool is_same(const struct ag_sample_function *a, const struct ag_sample_function *b)
{
	return strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

static void add_function(struct ag_sample_set *set, struct ag_sample *sample,
			 const struct ag_sample_function *function)
{
	uint32_t i;

	for (i = 0; i < set->n_functions; i++)
		if (is_same(&set->functions[i], function))
			break;
	if (i == AG_SAMPLE_FUNCTIONS)
		return;
	if (i == set->n_functions)
		set->functions[set->n_functions++] = *function;
	sample->function = (uint8_t)i;
}

/*
 * By the memory map alone, which CAP_SYS_PTRACE opens. dwfl_linux_proc_report() reads the auxiliary
 * vector too, which belongs to the process' user: it fails for the agent as a service.
 */
static Dwfl *open_process(pid_t pid)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = find_no_debuginfo,
	};
	char path[32];
	FILE *maps;
	Dwfl *dwfl;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return NULL;
	dwfl = dwfl_begin(&callbacks);
	if (dwfl &&
	    (dwfl_linux_proc_maps_report(dwfl, maps) || dwfl_report_end(dwfl, NULL, NULL))) {
		dwfl_end(dwfl);
		dwfl = NULL;
	}
	fclose(maps);
	return dwfl;
}

void ag_sample_name(pid_t pid, struct ag_sample_set *set)
{
	char kernel[AG_SAMPLE_MAX][AG_SAMPLE_NAME_BYTES] = {{0}};
	struct ag_sample_function function;
	uint32_t n_kernel = 0, i, j;
	Dwfl *dwfl;

	for (i = 0; i < set->n_samples; i++)
		n_kernel += set->samples[i].is_kernel;
	if (n_kernel > 0)
		find_kernel(set, kernel);
	dwfl = n_kernel < set->n_samples ? open_process(pid) : NULL;
	for (i = 0; i < set->n_samples; i++) {
		for (j = 0; j < i && set->samples[j].ip != set->samples[i].ip; j++)
			;
		if (j < i) {
			set->samples[i].function = set->samples[j].function;
			continue;
		}
		memset(&function, 0, sizeof(function));
		if (set->samples[i].is_kernel) {
			snprintf(function.file, sizeof(function.file), "kernel");
			memcpy(function.function, kernel[i], sizeof(function.function));
		} else {
			name_user(dwfl, set->samples[i].ip, &function);
		}
		add_function(set, &set->samples[i], &function);
	}
	if (dwfl)
		dwfl_end(dwfl);
}
