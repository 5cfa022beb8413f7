/** Forms of names, as regular expressions that both the schemas of the API and the records use. */

/** An entry of an allow-list: a model name, or a part of one with a `*` at one end. */
export const MODEL_PATTERN = '^(\\*|\\*?[A-Za-z0-9][A-Za-z0-9._:/@+-]*|[A-Za-z0-9][A-Za-z0-9._:/@+-]*\\*)$'
/** A model name. */
export const MODEL_NAME = '^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$'
/** RFC 1123 label: names of Services and of list entries. */
export const DNS_LABEL = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'
/** A top-level field of a request body. */
export const REQUEST_FIELD = '^[A-Za-z_][A-Za-z0-9_-]*$'
