/** Who sets a number: the tag `key`, `plan` or `account` behind it. */
import type { ReactNode } from 'react'
import type { Owner } from '../../server/page-data/keys.ts'
import styles from './source.module.css'

export function Source({ owner }: { readonly owner: Owner }): ReactNode {
  return <span className={styles.source}>{owner}</span>
}
