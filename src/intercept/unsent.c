/* See unsent.h. What was kept is of this very source, or form, as the program has set it; what is
 * behind the same pointer may have changed since. Whoever asks therefore looks first whether the
 * source gives a body by itself. */
#include "intercept/unsent.h"

#include <stdlib.h>

void unsent_forget(struct shadow *s)
{
	payload_unref(s->unsent.payload);
	free(s->unsent.type);
	s->unsent = (struct unsent){0};
}

void unsent_keep_stream(struct shadow *s, struct payload *body)
{
	struct body_source source = body_source_of(&s->options);

	unsent_forget(s);
	s->unsent = (struct unsent){.payload = payload_ref(body),
	                            .read = source.read,
	                            .data = source.data,
	                            .size = source.size};
}

static void *form_of(const struct options *o)
{
	return options_pointer(o, o->kind == HTTP_MIME ? CURLOPT_MIMEPOST : CURLOPT_HTTPPOST);
}

void unsent_keep_form(struct shadow *s, struct payload *body, curl_off_t size, char *type)
{
	unsent_forget(s);
	s->unsent = (struct unsent){.payload = payload_ref(body),
	                            .data = form_of(&s->options),
	                            .size = size,
	                            .type = type};
}

struct payload *unsent_take_stream(struct shadow *s, const struct body_source *source)
{
	const struct unsent *u = &s->unsent;
	struct payload *body = NULL;

	if (u->payload && !u->type && u->read == source->read && u->data == source->data &&
	    u->size == source->size)
		body = payload_ref(u->payload);
	unsent_forget(s);
	return body;
}

bool unsent_take_form(struct shadow *s, struct captured *out)
{
	struct unsent *u = &s->unsent;

	if (!u->payload || !u->type || u->data != form_of(&s->options))
		return false;
	payload_unref(out->body);
	free(out->type);
	out->body = u->payload;
	out->size = u->size;
	out->type = u->type;
	*u = (struct unsent){0};
	return true;
}
