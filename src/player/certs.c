/* CURLINFO_CERTINFO: a deep copy in the shape that libcurl's callers know, made with our own
 * allocations, since the lists of a handle go with it. */
#include "player/certs.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/bytes.h"

static void slist_free(struct curl_slist *list)
{
	while (list) {
		struct curl_slist *next = list->next;
		free(list->data);
		free(list);
		list = next;
	}
}

void certs_free(struct curl_certinfo *certs)
{
	for (int i = 0; i < certs->num_of_certs; i++)
		slist_free(certs->certinfo[i]);
	free(certs->certinfo);
	*certs = (struct curl_certinfo){0, NULL};
}

static struct curl_slist *slist_copy(const struct curl_slist *from, bool *failed)
{
	struct curl_slist *first = NULL, **end = &first;
	for (; from; from = from->next) {
		struct curl_slist *node = calloc(1, sizeof(*node));
		char *data = node ? span_dup(span_of(from->data)) : NULL;
		if (!data) {
			free(node);
			*failed = true;
			return first;
		}
		node->data = data;
		*end = node;
		end = &node->next;
	}
	return first;
}

int certs_copy(struct curl_certinfo *to, const struct curl_certinfo *from)
{
	struct curl_certinfo copy = {0, NULL};
	bool failed = false;
	if (from->num_of_certs > 0) {
		copy.certinfo = calloc((size_t)from->num_of_certs, sizeof(*copy.certinfo));
		if (!copy.certinfo)
			return -1;
		copy.num_of_certs = from->num_of_certs;
		for (int i = 0; i < from->num_of_certs && !failed; i++)
			copy.certinfo[i] = slist_copy(from->certinfo[i], &failed);
	}
	if (failed) {
		certs_free(&copy);
		return -1;
	}
	certs_free(to);
	*to = copy;
	return 0;
}
