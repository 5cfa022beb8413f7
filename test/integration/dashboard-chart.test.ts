/** The dashboard in the chart, as Helm renders it. `chart.test.ts` compares the renders with golden files; here are the promises. */
import { beforeEach, describe, expect, it } from 'vitest'
import { variableOf } from '#platform/settings.ts'
import { loadConfig as loadPayments, PAYMENTS_SETTINGS } from '../../dashboard/payments/config.ts'
import { DASHBOARD_SETTINGS, loadConfig } from '../../dashboard/server/config.ts'
import { DASHBOARD, MATRIX } from '../support/chart-matrix.ts'
import { CHART, findHelm, helm, named, NEEDED, objectsOf, type Rendered, template, templateOf } from '../support/chart.ts'

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string; readonly optional?: boolean } }
}

interface Container {
  readonly env: readonly Variable[]
  readonly volumeMounts?: ReadonlyArray<{ readonly name: string; readonly mountPath: string }>
  readonly lifecycle?: unknown
}

const NAME = 'headgate-dashboard'
const EXTRA_CA = 'NODE_EXTRA_CA_CERTS'
/** What the Secret of a complete installation holds. */
const SECRET: Readonly<Record<string, string>> = {
  DASHBOARD_SECRET: '0123456789abcdef0123456789abcdef',
  DATABASE_URL: 'postgres://headgate:secret@postgres:5432/headgate',
  SMTP_USERNAME: 'headgate',
  SMTP_PASSWORD: 'secret',
  GITHUB_CLIENT_SECRET: 'secret',
  GOOGLE_CLIENT_SECRET: 'secret',
  PAYMENTS_TOKEN: '0123456789abcdef0123456789abcdef',
  STRIPE_SECRET_KEY: 'sk_live_0123456789',
  STRIPE_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
  OIDC_PROVIDERS: '[{"id":"acme","name":"Acme","issuer":"https://id.example.net","clientId":"a","clientSecret":"secret"}]',
}

const render = (...set: readonly string[]): readonly Rendered[] => objectsOf(template([...DASHBOARD, ...set]))
const own = (objects: readonly Rendered[]): readonly Rendered[] =>
  objects.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'dashboard')
const podOf = (objects: readonly Rendered[], name = NAME): Readonly<Record<string, unknown>> =>
  (named(objects, 'Deployment', name).spec['template'] as Rendered).spec
const containerOf = (objects: readonly Rendered[], name = NAME): Container => (podOf(objects, name)['containers'] as Container[])[0]!

/** The environment as the program sees it, with the Secret of a complete installation. */
function environmentOf(objects: readonly Rendered[], name = NAME): Record<string, string> {
  const values = containerOf(objects, name).env.map(({ name: variable, value, valueFrom }) => [
    variable,
    value ?? SECRET[valueFrom?.secretKeyRef?.key ?? ''] ?? '',
  ])
  return Object.fromEntries(values) as Record<string, string>
}

beforeEach(({ skip }) => {
  skip(findHelm() === undefined, 'helm is not in the cache; `make test` builds it')
})

describe('the dashboard in the chart', () => {
  it('is off by default, and then adds nothing', () => {
    const objects = objectsOf(template([]))
    expect(own(objects)).toEqual([])
    const { stdout } = template(DASHBOARD.filter((one) => !/enabled|publicURL/.test(one)))
    expect(stdout).toBe(template([]).stdout)
  })

  it.each(['dashboard', 'dashboard-postgres'])(
    'sets only variables that the program reads, to values that the program accepts (%s)',
    (name) => {
      const env = environmentOf(objectsOf(template(MATRIX[name] ?? [])))
      expect([...Object.keys(DASHBOARD_SETTINGS.shape).map(variableOf), EXTRA_CA]).toEqual(expect.arrayContaining(Object.keys(env)))
      const config = loadConfig(env)
      const isFile = name === 'dashboard'
      expect(config.database).toEqual(isFile ? { file: '/var/lib/headgate/dashboard.db' } : { url: SECRET['DATABASE_URL'] })
      expect(config.auth.providers.map(({ id }) => id)).toEqual(isFile ? ['github', 'google', 'acme'] : ['acme'])
      expect(config.trustedProxies).toEqual(isFile ? ['10.244.0.0/16'] : ['10.244.0.0/16', 'fd00::/8'])
      expect(config.from).toBe('Headgate <no-reply@example.net>')
      expect(config.logLevel).toBe(isFile ? 'info' : 'debug')
    },
  )

  it('has the defaults of the program, so that docs/settings.md is right about both', () => {
    const env = environmentOf(render())
    const needed = [
      'DASHBOARD_URL',
      'PUBLIC_URL',
      'DASHBOARD_SECRET',
      'DATABASE_FILE',
      'SMTP_HOST',
      'MAIL_FROM',
      'USAGE_URL',
      'USAGE_TOKEN_FILE',
    ]
    const bare = Object.fromEntries(Object.entries(env).filter(([name]) => needed.includes(name)))
    expect(loadConfig({ ...env, OIDC_PROVIDERS: '', SMTP_USERNAME: '', SMTP_PASSWORD: '' })).toEqual(loadConfig(bare))
  })

  it('takes every secret from the Secret of existingSecret, and needs no more keys of it than it uses', () => {
    const refs = (...set: readonly string[]): readonly string[] =>
      containerOf(render(...set)).env.flatMap(({ valueFrom }) => {
        const ref = valueFrom?.secretKeyRef
        return ref && ref.optional !== true ? `${ref.name}/${ref.key}` : []
      })
    expect(refs()).toEqual(['headgate-dashboard/DASHBOARD_SECRET'])
    expect(refs('dashboard.postgres.enabled=true', 'dashboard.github.clientID=a', 'dashboard.google.clientID=b')).toEqual(
      ['DASHBOARD_SECRET', 'DATABASE_URL', 'GITHUB_CLIENT_SECRET', 'GOOGLE_CLIENT_SECRET'].map((key) => `headgate-dashboard/${key}`),
    )
    expect(own(render()).filter(({ kind }) => kind === 'Secret')).toEqual([])
  })

  it('with a file is one pod that ends before the next one starts, on a volume that an uninstall keeps', () => {
    const objects = render('dashboard.persistence.size=5Gi', 'dashboard.persistence.storageClass=fast')
    expect(named(objects, 'Deployment', NAME).spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } })
    const volume = named(objects, 'PersistentVolumeClaim', NAME)
    expect(volume.metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' })
    expect(volume.spec).toEqual({ accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '5Gi' } } })
    const [database] = podOf(objects)['volumes'] as readonly unknown[]
    expect(database).toEqual({ name: 'database', persistentVolumeClaim: { claimName: NAME } })
    expect(containerOf(objects).volumeMounts).toContainEqual({ name: 'database', mountPath: '/var/lib/headgate' })
    const mine = render('dashboard.persistence.existingClaim=mine')
    expect(own(mine).map(({ kind }) => kind)).not.toContain('PersistentVolumeClaim')
    expect(podOf(mine)['volumes']).toContainEqual({ name: 'database', persistentVolumeClaim: { claimName: 'mine' } })
  })

  it('with Postgres has no database volume, is replaced pod by pod, and then may have several replicas', () => {
    const objects = render('dashboard.postgres.enabled=true', 'dashboard.replicas=3')
    expect(named(objects, 'Deployment', NAME).spec).toMatchObject({ replicas: 3, strategy: { type: 'RollingUpdate' } })
    expect(podOf(objects)['volumes']).toEqual([expect.objectContaining({ name: 'usage-token' })])
    expect(containerOf(objects).lifecycle).toEqual({ preStop: { sleep: { seconds: 5 } } })
    expect(named(objects, 'PodDisruptionBudget', NAME).spec).toMatchObject({ maxUnavailable: 1 })
    expect(own(render('dashboard.postgres.enabled=true')).map(({ kind }) => kind)).not.toContain('PodDisruptionBudget')
  })

  it('grants the dashboard Accounts, Plans, models, usage, the reading of Credits, and ApiKeys in the namespace of the keys, and nothing else', () => {
    const objects = render('scope.watchNamespaces={shop}', 'accounts.enabled=true')
    const rights = own(objects).filter(({ kind }) => kind.endsWith('Role'))
    expect(rights.map(({ kind, rules }) => ({ kind, rules }))).toEqual([
      {
        kind: 'ClusterRole',
        rules: [
          { apiGroups: ['headgate.dev'], resources: ['accounts'], verbs: ['create', 'get', 'list', 'watch', 'patch'] },
          { apiGroups: ['headgate.dev'], resources: ['plans', 'servedmodels'], verbs: ['get', 'list', 'watch'] },
          { apiGroups: ['headgate.dev'], resources: ['credits'], verbs: ['get', 'list', 'watch'] },
          { apiGroups: ['headgate.dev'], resources: ['accounts/usage', 'accounts/ledger'], verbs: ['get'] },
        ],
      },
      {
        kind: 'Role',
        rules: [{ apiGroups: ['headgate.dev'], resources: ['apikeys'], verbs: ['create', 'get', 'list', 'watch', 'patch'] }],
      },
    ])
    const bindings = objects.filter((object) => object.kind.endsWith('RoleBinding') && JSON.stringify(object).includes(`"name":"${NAME}"`))
    expect(bindings.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
      ['ClusterRoleBinding', 'headgate-dashboard-headgate'],
      ['RoleBinding', 'headgate-dashboard-headgate'],
    ])
    expect(podOf(objects)).toMatchObject({ serviceAccountName: NAME, automountServiceAccountToken: true })
  })

  it('binds the admission policy to the plan, billing and namespace that the program gets', () => {
    const { stdout } = template(MATRIX['dashboard-postgres'] ?? [])
    expect(stdout).toContain(`variables.spec.planRef == {'name': 'starter'}`)
    expect(stdout).toContain(`variables.spec.billing == 'Unmetered'`)
    expect(stdout).toContain(`variables.spec.namespaces == {'matchLabels': {'kubernetes.io/metadata.name': 'people'}}`)
    expect(environmentOf(objectsOf(template(MATRIX['dashboard-postgres'] ?? [])))).toMatchObject({
      DEFAULT_PLAN: 'starter',
      ACCOUNT_BILLING: 'Unmetered',
      KEYS_NAMESPACE: 'people',
    })
    const prepaid = template(MATRIX['dashboard'] ?? [])
    expect(prepaid.stdout).toContain(`variables.spec.billing == 'Prepaid'`)
    expect(environmentOf(objectsOf(prepaid))).toMatchObject({ ACCOUNT_BILLING: 'Prepaid' })
    const kinds = (set: readonly string[]): readonly string[] => own(render(...set)).map(({ kind }) => kind)
    expect(kinds([])).toContain('ValidatingAdmissionPolicyBinding')
    expect(kinds(['admissionPolicy.enabled=false']).filter((kind) => kind.startsWith('Validating'))).toEqual([])
  })

  it('makes the namespace of the keys, which an uninstall keeps, and lets the operator serve it and ask for an account there', () => {
    const all = render()
    expect(named(all, 'Namespace', 'headgate-accounts').metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' })
    const operator = (objects: readonly Rendered[]): Record<string, string> => environmentOf(objects, 'headgate-operator')
    expect(operator(all)).toMatchObject({ WATCH_NAMESPACES: '', ACCOUNT_REQUIRED_NAMESPACES: 'headgate-accounts' })
    const some = render('scope.watchNamespaces={shop}', 'accounts.enabled=true', 'accounts.requiredIn={shop}')
    expect(operator(some)).toMatchObject({
      WATCH_NAMESPACES: 'shop,headgate-accounts',
      ACCOUNT_REQUIRED_NAMESPACES: 'shop,headgate-accounts',
    })
    for (const namespace of ['shop', 'headgate-accounts'])
      expect(named(some, 'Role', 'headgate-operator-headgate-watched', namespace).rules).not.toEqual([])
    const listed = render('scope.watchNamespaces={shop,headgate-accounts}', 'accounts.enabled=true', 'accounts.requiredIn={*}')
    expect(operator(listed)).toMatchObject({ WATCH_NAMESPACES: 'shop,headgate-accounts', ACCOUNT_REQUIRED_NAMESPACES: '*' })
    expect(own(render('dashboard.createNamespace=false')).map(({ kind }) => kind)).not.toContain('Namespace')
  })

  it('is reached at the host of its URL alone, on its own port alone', () => {
    const ingress = objectsOf(template(MATRIX['dashboard'] ?? []))
    const backend = { service: { name: NAME, port: { name: 'http' } } }
    const events = { service: { name: 'headgate-payments', port: { name: 'webhooks' } } }
    const paths = [
      { path: '/webhooks/stripe', pathType: 'Exact', backend: events },
      { path: '/', pathType: 'Prefix', backend },
    ]
    expect(named(ingress, 'Ingress', NAME).spec).toEqual({
      ingressClassName: 'nginx',
      tls: [{ secretName: 'dashboard-tls', hosts: ['dashboard.example.net'] }],
      rules: [{ host: 'dashboard.example.net', http: { paths } }],
    })
    const route = objectsOf(template(MATRIX['dashboard-postgres'] ?? []))
    expect(named(route, 'HTTPRoute', NAME).spec).toMatchObject({
      parentRefs: [{ name: 'public' }],
      hostnames: ['dashboard.example.net'],
      rules: [{ backendRefs: [{ name: NAME, port: 8090 }] }],
    })
    expect(named(route, 'Service', NAME).spec['ports']).toMatchObject([{ name: 'http', port: 8090 }])
    expect(JSON.stringify([named(ingress, 'Ingress', NAME), named(route, 'HTTPRoute', NAME)])).not.toMatch(/9090|metrics/)
  })

  it('may reach name servers, the API server, mail, providers, and Postgres where it is used (rendered, not enforced here)', () => {
    const policy = (name: string): Rendered => named(objectsOf(template(MATRIX[name] ?? [])), 'NetworkPolicy', NAME)
    const egress = (name: string): readonly unknown[] => policy(name).spec['egress'] as readonly unknown[]
    const ports = (...numbers: readonly number[]): object => ({ ports: numbers.map((port) => expect.objectContaining({ port })) })
    expect(egress('dashboard')).toMatchObject([
      ports(53, 53, 5353, 5353),
      ports(443, 6443),
      ports(587),
      ports(9091),
      ports(8092),
      ports(443),
    ])
    expect(egress('dashboard-postgres')).toMatchObject([
      ports(53, 53, 5353, 5353),
      ports(443, 6443),
      ports(465),
      ports(9091),
      ports(5432),
      ports(443),
    ])
    expect(JSON.stringify(egress('dashboard'))).not.toContain('6379')
    expect(policy('dashboard').spec['ingress']).toMatchObject([ports(8090), ports(9090)])
  })

  it('is scraped with the other programs', () => {
    const monitor = named(objectsOf(template(MATRIX['dashboard-postgres'] ?? [])), 'ServiceMonitor', 'headgate')
    expect(JSON.stringify(monitor.spec['selector'])).toContain('["operator","gateway","dashboard"]')
  })

  it('says where people sign up, and which Plan must exist', () => {
    const notes = (...set: readonly string[]): string =>
      helm('install', 'headgate', ...chartArguments([...DASHBOARD, ...set])).stdout.replaceAll('\n', ' ')
    const text = notes()
    expect(text).toContain('People sign up at https://dashboard.example.net')
    expect(text).toContain('kubectl get plan default')
    expect(text).not.toContain('dashboard.url is http://')
    expect(notes('dashboard.url=http://localhost:8090')).toContain('WARNING: dashboard.url is http://')
  })
})

describe('the payments program in the chart', () => {
  const PAYMENTS = 'headgate-payments'
  const stripe = (...set: readonly string[]): readonly Rendered[] =>
    render('dashboard.billing=Prepaid', 'dashboard.payments.provider=stripe', 'dashboard.payments.existingSecret=pay', ...set)
  const secretsOf = (objects: readonly Rendered[], name: string): readonly string[] =>
    containerOf(objects, name).env.flatMap(({ valueFrom }) =>
      valueFrom ? [`${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}`] : [],
    )

  it('is there with a payment provider alone', () => {
    const isThere = (objects: readonly Rendered[]): boolean => objects.some(({ metadata }) => metadata.name.startsWith(PAYMENTS))
    expect([
      isThere(stripe()),
      isThere(render()),
      isThere(render('dashboard.billing=Prepaid', 'dashboard.payments.provider=manual')),
    ]).toEqual([...[true, false, false]])
  })

  it('gets values that the program accepts, and the settings that it has by itself', () => {
    const objects = stripe('billing.currency=EUR', 'dashboard.payments.installation=prod', 'dashboard.settings.logLevel=debug')
    const env = environmentOf(objects, PAYMENTS)
    expect(Object.keys(PAYMENTS_SETTINGS.shape).map(variableOf)).toEqual(expect.arrayContaining(Object.keys(env)))
    expect(loadPayments(env)).toMatchObject({ installation: 'prod', billingCurrency: 'EUR', isLive: true, logLevel: 'debug' })
    expect(loadPayments(environmentOf(stripe(), PAYMENTS)).installation).toBe('dashboard.example.net')
    expect(loadConfig(environmentOf(stripe('dashboard.payments.amounts={50,20}')))).toMatchObject({
      payments: {
        provider: 'stripe',
        url: 'http://headgate-payments-checkout.headgate.svc:8092',
        amounts: ['20', '50'],
        most: 1_000_000_000,
      },
    })
  })

  it('alone holds the secrets of the provider, and none of the dashboard', () => {
    const objects = stripe()
    expect(secretsOf(objects, PAYMENTS)).toEqual(['pay/STRIPE_SECRET_KEY', 'pay/STRIPE_WEBHOOK_SECRET', 'pay/PAYMENTS_TOKEN'])
    expect(secretsOf(objects, NAME).filter((one) => one.startsWith('pay/'))).toEqual(['pay/PAYMENTS_TOKEN'])
    expect(JSON.stringify(podOf(objects, PAYMENTS))).not.toMatch(/headgate-dashboard"|database|persistentVolumeClaim/)
  })

  it('may create, get and list Credits, and nothing else; the dashboard may only read them', () => {
    const objects = stripe()
    const rules = (name: string) => named(objects, 'ClusterRole', name).rules
    expect(rules('headgate-payments-headgate')).toEqual([
      { apiGroups: ['headgate.dev'], resources: ['credits'], verbs: ['create', 'get', 'list'] },
    ])
    const ofDashboard = rules('headgate-dashboard-headgate') as readonly {
      readonly resources: readonly string[]
      readonly verbs: readonly string[]
    }[]
    expect(ofDashboard.filter(({ resources }) => resources.includes('credits')).map(({ verbs }) => verbs)).toEqual([
      ['get', 'list', 'watch'],
    ])
    expect(objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name.startsWith(PAYMENTS))).toEqual([])
  })

  it('takes events at the host of the dashboard, and questions from the dashboard alone (rendered, not enforced here)', () => {
    const objects = stripe('dashboard.ingress.enabled=true', 'dashboard.trustedProxies={10.0.0.0/8}')
    expect(named(objects, 'Ingress', NAME).spec['rules']).toMatchObject([
      {
        host: 'dashboard.example.net',
        http: {
          paths: [
            { path: '/webhooks/stripe', pathType: 'Exact', backend: { service: { name: PAYMENTS, port: { name: 'webhooks' } } } },
            { path: '/', backend: { service: { name: NAME } } },
          ],
        },
      },
    ])
    const [webhooks, checkout, metrics] = named(objects, 'NetworkPolicy', PAYMENTS).spec['ingress'] as readonly object[]
    expect(webhooks).toEqual({ ports: [{ port: 8091, protocol: 'TCP' }] })
    expect(checkout).toMatchObject({
      ports: [{ port: 8092 }],
      from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'dashboard' } } }],
    })
    expect(metrics).toMatchObject({ ports: [{ port: 9090 }] })
  })
})

describe('values of the dashboard that cannot work are refused, with the remedy:', () => {
  it.each<readonly [string, string, RegExp]>([
    ['no address', 'dashboard.url=', /dashboard\.url: it is empty.*--set dashboard\.url=https/],
    ['an address with a path', 'dashboard.url=https://example.net/dashboard', /url/],
    [
      'no secret',
      'dashboard.existingSecret=',
      /kubectl create secret generic headgate-dashboard --namespace headgate .*openssl rand -base64 48/,
    ],
    ['no mail server', 'dashboard.smtp.host=', /without mail nobody could verify.*--set dashboard\.smtp\.host=/],
    ['no sender', 'dashboard.smtp.from=', /without mail nobody could verify/],
    ['a sender that is none', 'dashboard.smtp.from=Headgate', /from/],
    ['no address of the gateways', 'gateway.publicURL=', /gateway\.publicURL: the dashboard shows people where to call/],
    ['no accounts', 'accounts.enabled=false', /dashboard\.enabled needs accounts\.enabled: true/],
    [
      'several replicas on a file',
      'dashboard.replicas=2',
      /more than one replica needs Postgres.*DATABASE_URL.*dashboard\.postgres\.enabled=true/,
    ],
    [
      'an Ingress without its networks',
      'dashboard.ingress.enabled=true',
      /dashboard\.trustedProxies: it is empty.*--set 'dashboard\.trustedProxies=/,
    ],
    [
      'an HTTPRoute without its networks',
      'dashboard.httpRoute.enabled=true,dashboard.httpRoute.parentRefs[0].name=public',
      /dashboard\.trustedProxies/,
    ],
    [
      'an HTTPRoute without a parent',
      'dashboard.httpRoute.enabled=true,dashboard.trustedProxies={10.0.0.0/8}',
      /dashboard\.httpRoute\.parentRefs/,
    ],
    [
      'payments into no balance',
      'dashboard.payments.provider=manual',
      /Unmetered Accounts have none; add --set dashboard\.billing=Prepaid/,
    ],
    [
      'Stripe without its secrets',
      'dashboard.billing=Prepaid,dashboard.payments.provider=stripe',
      /dashboard\.payments\.existingSecret: it is empty.*STRIPE_WEBHOOK_SECRET.*openssl rand -hex 24/,
    ],
    ['an amount that is none', 'dashboard.payments.most=1e9', /most/],
    ['the host of the gateway', 'dashboard.url=https://models.example.net', /models\.example\.net is a host of the gateway too/],
    ['the namespace of the release', 'dashboard.keysNamespace=headgate', /headgate is the namespace of the release/],
    [
      'a namespace that is taken out of service',
      'scope.watchNamespaces={shop},scope.formerNamespaces={headgate-accounts},accounts.enabled=true',
      /headgate-accounts is served too/,
    ],
    ['a network that is none', 'dashboard.trustedProxies={ingress}', /trustedProxies/],
    ['a misspelt value', 'dashboard.smtp.hostname=x', /hostname/],
    ['a setting that the chart sets itself', 'dashboard.extraEnv[0].name=SMTP_HOST,dashboard.extraEnv[0].value=x', /dashboard\.extraEnv/],
  ])('%s', (_, set, message) => {
    const { ok, stderr } = template([...DASHBOARD, set])
    expect(ok).toBe(false)
    expect(stderr).toMatch(message)
  })

  it('no registry of its image', () => {
    const { ok, stderr } = templateOf([...NEEDED, ...DASHBOARD.filter((one) => !one.includes('image.registry'))])
    expect(ok).toBe(false)
    expect(stderr).toContain('dashboard.image.registry: it is empty')
    expect(stderr).toContain('docker build -f dashboard/Dockerfile')
    expect(stderr).toContain('operator.image.registry=localhost,gateway.image.registry=localhost,dashboard.image.registry=localhost')
  })
})

/** Arguments of `helm install` that only render, with the notes. */
function chartArguments(set: readonly string[]): readonly string[] {
  const values = [...NEEDED, ...set].flatMap((one) => ['--set', one])
  return [CHART, '-n', 'headgate', '--dry-run=client', ...values]
}
