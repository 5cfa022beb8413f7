/**
 * The durable identity of this installation, its secret, and the currency of its amounts, stored beside the keyring. The operator does not write
 * to a Redis of another installation.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { isKubeError, KubeError, type KubePort } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'

/** Name of the Secret, in the operator's namespace. It stays when an uninstall keeps the keyring. */
export const INSTALLATION_SECRET = 'hg-installation'
const ID_ENTRY = 'id'
const SECRET_ENTRY = 'secret'
const SECRET_BYTES = 32
const CURRENCY_ENTRY = 'currency'

export interface Installation {
  /** Not secret: Redis, logs and annotations of Accounts contain the id. */
  readonly id: string
  /** Key of HMACs that nobody outside the installation may compute, such as the keys of cache salts. */
  readonly secret: string
}

interface InstallationDeps {
  readonly kube: KubePort
  readonly namespace: string
}

/** @returns the id; undefined before the first start @throws KubeError */
export async function knownInstallation({ kube, namespace }: InstallationDeps): Promise<string | undefined> {
  const present = await kube.get(secrets, { namespace, name: INSTALLATION_SECRET })
  return present && idOf(present)
}

/** @returns the id and the secret, which the first start creates @throws KubeError */
export async function readInstallation({ kube, namespace }: InstallationDeps): Promise<Installation> {
  const present = await kube.get(secrets, { namespace, name: INSTALLATION_SECRET })
  const known: Partial<Installation> = present ? entriesOf(present) : {}
  if (isWhole(known)) return known
  const own = { id: randomUUID(), secret: randomBytes(SECRET_BYTES).toString('base64url'), ...known }
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: INSTALLATION_SECRET,
      namespace,
      labels: { 'app.kubernetes.io/managed-by': 'headgate-operator' },
      ...(present?.metadata.resourceVersion ? { resourceVersion: present.metadata.resourceVersion } : {}),
    },
    type: 'Opaque',
    data: { ...present?.data, [ID_ENTRY]: encoded(own.id), [SECRET_ENTRY]: encoded(own.secret) },
  }
  try {
    await (present ? kube.update(secrets, secret) : kube.create(secrets, secret))
    return own
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists', 'Conflict')) throw error
    return await readInstallation({ kube, namespace }) // another leader created it first
  }
}

/** @returns undefined for an empty Secret or an invalid id; the installation then gets another id */
function idOf({ data }: Secret): string | undefined {
  const id = Buffer.from(data?.[ID_ENTRY] ?? '', 'base64').toString('utf8')
  return /^[0-9a-f-]{36}$/.test(id) ? id : undefined
}

/** @returns the valid entries */
function entriesOf(secret: Secret): Partial<Installation> {
  const id = idOf(secret)
  const text = Buffer.from(secret.data?.[SECRET_ENTRY] ?? '', 'base64').toString('utf8')
  return { ...(id !== undefined && { id }), ...(/^[\w-]{43}$/.test(text) && { secret: text }) }
}

function isWhole(known: Partial<Installation>): known is Installation {
  return known.id !== undefined && known.secret !== undefined
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64')
}

export interface HeldCurrency {
  readonly kube: KubePort
  readonly namespace: string
  /** The setting: three letters. */
  readonly currency: string
}

/**
 * @returns the currency of all amounts of this installation, which the first start with accounts stores
 * @throws KubeError, also if the Secret of the installation does not exist
 */
export async function holdCurrency({ kube, namespace, currency }: HeldCurrency): Promise<string> {
  const ref = { namespace, name: INSTALLATION_SECRET }
  const secret = await kube.get(secrets, ref)
  if (secret === undefined) throw new KubeError('NotFound', 404, `there is no Secret ${INSTALLATION_SECRET}`)
  const known = currencyOf(secret)
  if (known !== undefined) return known
  await kube.update(secrets, { ...secret, data: { ...secret.data, [CURRENCY_ENTRY]: encoded(currency) } })
  return currency
}

/** @returns the stored currency, or the setting before the first start with accounts @throws KubeError */
export async function readCurrency({
  kube,
  namespace,
  currency,
}: Omit<HeldCurrency, 'kube'> & { readonly kube: Pick<KubePort, 'get'> }): Promise<string> {
  const secret = await kube.get(secrets, { namespace, name: INSTALLATION_SECRET })
  return (secret && currencyOf(secret)) ?? currency
}

function currencyOf({ data }: Secret): string | undefined {
  const text = Buffer.from(data?.[CURRENCY_ENTRY] ?? '', 'base64').toString('utf8')
  return /^[A-Z]{3}$/.test(text) ? text : undefined
}
