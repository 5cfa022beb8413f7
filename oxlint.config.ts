/**
 * Lint rules: correctness, the size caps, and the import fences between folders.
 *
 * A later override of oxlint replaces a rule's options instead of adding to them, so each zone below is turned into the full list
 * of imports that its files may not use. `test/contract/fences.test.ts` proves that the linter refuses those imports.
 */

interface Zone {
  /** Folder (ends in `/`) or single file that the rule applies to. */
  readonly at: string
  /** Shared rooms that the files may import, by their short paths: `contract` is `#contract/…`. */
  readonly rooms: readonly Room[]
  /** Relative import paths that the files may not use, in the notation of .gitignore (`!` allows one again). */
  readonly deny: readonly string[]
  /** Relative import paths of which the files may import types alone. */
  readonly types?: readonly string[]
  /** Packages of FENCED_PACKAGES that the files may import. */
  readonly packages?: readonly string[]
  /** The message of the linter. */
  readonly why: string
}

/** The shared rooms: `#<room>/` in package.json. */
const ROOMS = ['api', 'contract', 'kube', 'platform', 'policy'] as const
type Room = (typeof ROOMS)[number]

/** Packages that only a few folders may import; all other code uses those folders. */
const IDENTITY_PACKAGES = ['better-auth', '@better-auth/kysely-adapter', 'kysely', 'pg']
const FENCED_PACKAGES = [
  '@kubernetes/client-node',
  'express',
  'undici',
  'ioredis',
  'prom-client',
  'nodemailer',
  'helmet',
  'stripe',
  ...IDENTITY_PACKAGES,
]

/** Folders of the programs and of the tests. No file imports one of them from another folder, except standalone/, which composes the programs. */
const PROGRAMS = ['gateway', 'operator', 'standalone', 'cli', 'dashboard', 'examples', 'test']
const outside = (own: string, ...also: readonly string[]) =>
  PROGRAMS.filter((name) => name !== own && !also.includes(name)).map((name) => `**/${name}/**`)

const COMPOSITION = ['**/app.ts', '**/main.ts']
/** The layers of the gateway, from top to bottom. A folder imports only folders of lower layers; folders of one layer never import each other. */
const LAYERS = [['routes'], ['auth', 'limits', 'upstream'], ['projection', 'http'], ['dialects']]
const LAYER_RULE = `${LAYERS.map((folders) => `{ ${folders.join(', ')} }`).join(' -> ')}; folders of one layer never import each other`
const GATEWAY: Omit<Zone, 'at' | 'why'> = { rooms: ['contract', 'platform', 'policy'], deny: outside('gateway') }
/** The zone of one layer's folder: all layers above and beside it are closed. */
const layer = (folder: string, packages: readonly string[] = []): Zone => {
  const closed = LAYERS.slice(0, LAYERS.findIndex((folders) => folders.includes(folder)) + 1).flat()
  const others = closed.filter((other) => other !== folder).map((other) => `../${other}/**`)
  return { ...GATEWAY, at: `gateway/${folder}/`, deny: [...GATEWAY.deny, ...COMPOSITION, ...others], packages, why: LAYER_RULE }
}
const GATEWAY_RULE = 'gateway/ imports lib/contract, lib/policy and lib/platform; it never sees a custom resource'
const OPERATOR: Omit<Zone, 'at'> = { rooms: ROOMS, deny: outside('operator'), why: 'operator/ imports api/ and lib/, and no other program' }
const DASHBOARD: Omit<Zone, 'at'> = {
  rooms: ['api', 'contract', 'kube', 'platform', 'policy'],
  deny: [...outside('dashboard'), '**/web/**', '**/payments/*.ts', '!**/payments/protocol.ts'],
  why: 'dashboard/server/ imports api/ and lib/, and no other program; of dashboard/web/ it serves the build',
}
const IO = [
  'fs',
  'fs/promises',
  'net',
  'http',
  'https',
  'http2',
  'tls',
  'dns',
  'child_process',
  'timers',
  'timers/promises',
  'worker_threads',
]

/** From wide to narrow: if a file is in several zones, the last one applies. */
const ZONES: readonly Zone[] = [
  {
    at: 'lib/contract/',
    rooms: [],
    deny: ['../../**'],
    why: 'lib/contract/ imports nothing of ours: it is the agreement between the programs',
  },
  { at: 'lib/platform/', rooms: [], deny: ['../**'], why: 'lib/platform/ serves any process: it imports nothing of ours' },
  { at: 'lib/policy/', rooms: ['contract'], deny: ['../**'], why: 'lib/policy/ is pure over records: it imports lib/contract alone' },
  {
    at: 'lib/kube/',
    rooms: ['platform'],
    deny: ['../**'],
    packages: ['@kubernetes/client-node', 'undici'],
    why: "lib/kube/ is a client for any kind: it knows lib/platform alone, and none of Headgate's own kinds",
  },
  {
    at: 'api/',
    rooms: ['contract', 'kube'],
    deny: ['../**', '\\#kube/**', '!\\#kube/port.ts'],
    why: 'api/ holds schemas: it imports lib/contract and the object types of lib/kube/port.ts',
  },
  { ...GATEWAY, at: 'gateway/', why: GATEWAY_RULE },
  { ...GATEWAY, at: 'gateway/app.ts', deny: [...GATEWAY.deny, '**/main.ts'], packages: ['express'], why: GATEWAY_RULE },
  {
    ...GATEWAY,
    at: 'gateway/errors.ts',
    deny: [...GATEWAY.deny, ...COMPOSITION, ...LAYERS.flat().map((folder) => `./${folder}/**`)],
    why: 'gateway/errors.ts is below every layer',
  },
  layer('routes', ['express']),
  layer('http', ['express']),
  layer('upstream', ['undici']),
  ...['auth', 'limits', 'projection', 'dialects'].map((folder) => layer(folder)),
  { ...OPERATOR, at: 'operator/' },
  ...['observe', 'apply'].map((name) => ({
    ...OPERATOR,
    at: `operator/kinds/*/${name}.ts`,
    deny: [...OPERATOR.deny, '\\#kube/**', '!\\#kube/port.ts', '!\\#kube/resources.ts'],
    why: 'observe and apply reach the cluster only through lib/kube/port.ts',
  })),
  ...['steps', 'key-state'].map((name) => ({
    at: `operator/kinds/*/${name}.ts`,
    rooms: ['api', 'contract', 'kube', 'policy'] as const,
    deny: [
      ...IO.map((io) => `node:${io}`),
      './{observe,apply,kind}.ts',
      '../**',
      '!../../loop/{level,reconciler}.ts',
      '!../../projection/programmed.ts',
      '!../../accounts/record-state.ts',
      '\\#kube/**',
      '!\\#kube/{port,resources}.ts',
    ],
    why: 'the next step is a pure function of the observed objects: its file imports api/, lib/contract, lib/policy and object types',
  })),
  { at: 'cli/', rooms: ROOMS, deny: outside('cli'), why: 'cli/ imports api/ and lib/: it acts with the rights of its user' },
  { ...DASHBOARD, at: 'dashboard/server/' },
  { ...DASHBOARD, at: 'dashboard/server/app.ts', packages: ['express', 'helmet'] },
  {
    ...DASHBOARD,
    at: 'dashboard/server/identity/',
    packages: IDENTITY_PACKAGES,
    why: 'dashboard/server/identity/ alone imports the identity library and the database',
  },
  { ...DASHBOARD, at: 'dashboard/server/mail/', packages: ['nodemailer'] },
  {
    ...DASHBOARD,
    at: 'dashboard/server/pages/',
    rooms: [],
    deny: [...DASHBOARD.deny, ...IO.map((io) => `node:${io}`), '../{http,identity,accounts,mail,routes}/**'],
    why: 'pages are pure functions of their views',
  },
  {
    at: 'dashboard/payments/',
    rooms: ['api', 'contract', 'kube', 'platform'],
    deny: [...outside('dashboard'), '**/web/**', '**/server/**'],
    packages: ['stripe'],
    why: 'dashboard/payments/ is a program of its own, and alone talks to the payment provider',
  },
  {
    at: 'dashboard/web/',
    rooms: [],
    deny: [...outside('dashboard'), 'node:*', '**/payments/**'],
    types: ['**/server/**'],
    why: 'dashboard/web/ runs in the browser: of the server it imports types alone, and of the rest nothing',
  },
  { at: 'examples/', rooms: ['contract', 'platform'], deny: outside('examples'), why: 'examples/ imports no program' },
  {
    at: 'standalone/',
    rooms: ROOMS,
    deny: ['**/test/**', '**/cli/**', '\\#kube/transport.ts', '\\#kube/reflector.ts'],
    why: 'standalone/ composes the programs, and never imports the Kubernetes client',
  },
]

function fence(zone: Zone, extra: readonly string[] = []): unknown {
  const allowed = new Set([...(zone.packages ?? []), ...extra])
  const packages = FENCED_PACKAGES.filter((name) => !allowed.has(name))
  const rooms = ROOMS.filter((room) => !zone.rooms.includes(room))
  return [
    'error',
    {
      paths: [{ name: 'node:process', importNames: ['env'], message: 'config.ts files alone read the environment' }],
      patterns: [
        { group: zone.deny, message: zone.why },
        ...(zone.types ? [{ group: zone.types, allowTypeImports: true, message: zone.why }] : []),
        ...(rooms.length > 0 ? [{ regex: `^#(${rooms.join('|')})/`, message: zone.why }] : []),
        { regex: `^(${packages.join('|')})(/|$)`, message: 'this package has its own folder; see ZONES in oxlint.config.ts' },
      ],
    },
  ]
}

/** The overrides of one zone: one for its files, and in a folder one for each kind of file name that may import one more package. */
function overridesOf(zone: Zone): unknown[] {
  const rule = (files: string, extra?: readonly string[]) => ({ files: [files], rules: { 'no-restricted-imports': fence(zone, extra) } })
  if (!zone.at.endsWith('/')) return [rule(zone.at)]
  return [rule(`${zone.at}**`), rule(`${zone.at}**/redis-*.ts`, ['ioredis']), rule(`${zone.at}**/metrics.ts`, ['prom-client'])]
}

const CAPS = {
  'max-lines': ['error', { max: 400 }],
  'max-lines-per-function': ['error', { max: 60 }],
  'max-params': ['error', { max: 4 }],
  'max-depth': ['error', { max: 3 }],
  'max-statements': ['error', { max: 20 }],
  complexity: ['error', { max: 10 }],
}

const PLUGINS = ['typescript', 'import', 'unicorn', 'oxc', 'node', 'promise', 'vitest']

/** The rules of pages: hooks, and what a keyboard or a screen reader needs. */
const PAGES = {
  'react/rules-of-hooks': 'error',
  'react/exhaustive-deps': 'error',
  'react/no-danger': 'error',
  'react/jsx-key': 'error',
  'jsx-a11y/alt-text': 'error',
  'jsx-a11y/anchor-is-valid': 'error',
  'jsx-a11y/aria-props': 'error',
  'jsx-a11y/aria-role': 'error',
  'jsx-a11y/click-events-have-key-events': 'error',
  'jsx-a11y/label-has-associated-control': 'error',
  'jsx-a11y/no-autofocus': 'error',
  'jsx-a11y/no-redundant-roles': 'error',
  'jsx-a11y/role-has-required-aria-props': 'error',
  'jsx-a11y/role-supports-aria-props': 'error',
  'jsx-a11y/tabindex-no-positive': 'error',
}

const config = {
  plugins: PLUGINS,
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  categories: { correctness: 'error' },
  ignorePatterns: ['dist/', '.headgate/', 'coverage/', 'charts/', 'crds/'],
  rules: {
    ...CAPS,
    'no-console': 'error',
    'no-empty': 'error',
    'no-empty-function': 'error',
    'no-var': 'error',
    'prefer-const': 'error',
    eqeqeq: 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'node/no-process-env': 'error',
    'unicorn/no-thenable': 'off', // in a table, `then` may name a field that is not a function
    'unicorn/no-useless-spread': 'off', // a loop that changes its source needs the copy
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/no-non-null-assertion': 'error',
    'typescript/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
    'vitest/no-conditional-expect': 'off',
    'vitest/expect-expect': 'off', // the rule does not find assertions inside our own functions
    'vitest/require-to-throw-message': 'off',
    'vitest/valid-expect': ['error', { maxArgs: 2 }], // the second is the message
    'vitest/no-restricted-vi-methods': ['error', { mock: 'pass the dependency in', doMock: 'pass the dependency in' }],
  },
  overrides: [
    ...ZONES.flatMap(overridesOf),
    { files: ['**/config.ts', 'lib/platform/settings.ts', 'cli/run.ts'], rules: { 'node/no-process-env': 'off' } },
    { files: ['**/*.tsx'], plugins: [...PLUGINS, 'react', 'jsx-a11y'], rules: PAGES },
    { files: ['*.config.ts', 'test/support/*-setup.ts'], rules: { 'import/no-default-export': 'off' } },
    {
      files: ['test/**', '**/*.test.ts'],
      rules: { 'no-restricted-imports': 'off', 'node/no-process-env': 'off' },
    },
    {
      files: ['**/*.test.ts', '**/*.suite.ts'],
      rules: {
        'max-lines': ['error', { max: 600 }],
        'max-lines-per-function': 'off', // a describe block is one function
        'max-statements': 'off',
        'typescript/no-non-null-assertion': 'off',
      },
    },
  ],
}

export default config
