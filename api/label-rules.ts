/** Rules for the keys of label and annotation maps, shared by all kinds. */
import { API_GROUP, isLabelKey, LABEL_KEY, LABEL_KEY_PREFIX } from './metadata.ts'
import type { Rule } from './rule.ts'
import { shownText } from './manifest-error.ts'

type Entries = Readonly<Record<string, string>>

const OWN_PREFIX = `${API_GROUP}/`

/** Keys have the form that Kubernetes accepts. */
export const labelKeys: Rule<Entries> = {
  id: 'label-keys',
  cel: `self.all(key, key.matches(r'${LABEL_KEY}') && key.matches(r'${LABEL_KEY_PREFIX}'))`,
  reason: 'a key is not of the form [prefix/]name',
  remedy: 'use letters, digits, ".", "_" and "-", at most 63 after the prefix, which is a DNS name',
  values: (self) => shownText(Object.keys(self).find((key) => !isLabelKey(key)) ?? ''),
  holds: (self) => Object.keys(self).every(isLabelKey),
}

/** Keys below headgate.dev/ are reserved for the operator. */
export const ownKeys: Rule<Entries> = {
  id: 'own-keys',
  cel: `self.all(key, !key.startsWith('${OWN_PREFIX}'))`,
  reason: `keys below ${OWN_PREFIX} belong to the operator`,
  remedy: 'choose another prefix',
  values: (self) => shownText(Object.keys(self).find((key) => key.startsWith(OWN_PREFIX)) ?? ''),
  holds: (self) => Object.keys(self).every((key) => !key.startsWith(OWN_PREFIX)),
}
