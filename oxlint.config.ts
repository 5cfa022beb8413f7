/**
 * Lint rules: correctness, the size caps, and the import fences between folders.
 *
 * A later override of oxlint replaces a rule's options instead of adding to them, so each zone below is turned into the full list
 * of imports that its files may not use. `test/contract/fences.test.ts` proves that the linter refuses those imports.
 */

interface Zone {
  /** Folder (ends in `/`) or single file that the rule applies to. */
  readonly at: string
  /** Import paths that the files may not use, in the notation of .gitignore (`!` allows one again). */
  readonly deny: readonly string[]
  /** Packages of FENCED_PACKAGES that the files may import. */
  readonly packages?: readonly string[]
  /** The message of the linter. */
  readonly why: string
}

/** Packages that only a few folders may import; all other code uses those folders. */
const FENCED_PACKAGES = ['@kubernetes/client-node', 'express', 'undici', 'ioredis', 'prom-client']

const OUTSIDE_GATEWAY = ['**/operator/**', '**/standalone/**', '**/test/**']
const COMPOSITION = ['**/app.ts', '**/main.ts']
/** The layers of the gateway, from top to bottom. A folder imports only folders of lower layers; folders of one layer never import each other. */
const LAYERS = [['routes'], ['auth', 'limits', 'upstream'], ['projection', 'http'], ['dialects'], ['shared', 'process']]
const layerOf = (folder: string): number => LAYERS.findIndex((folders) => folders.includes(folder))
/** The imports that the files of a folder may not use. */
const deniedTo = (folder: string): readonly string[] => {
  const denied = LAYERS.slice(0, layerOf(folder) + 1)
    .flat()
    .filter((other) => other !== folder)
  return [...OUTSIDE_GATEWAY, ...COMPOSITION, ...denied.map((other) => `../${other}/**`)]
}
const LAYER_RULE = `${LAYERS.map((folders) => `{ ${folders.join(', ')} }`).join(' -> ')}; folders of one layer never import each other`
const GATEWAY_RULE = 'gateway/ imports nothing of operator/, standalone/ or test/'
const SHARED_RULE = 'gateway/shared/ is the contract with the operator: its files import only each other'
const PROCESS_RULE = 'gateway/process/ is plumbing of any process: its files import only each other'
const OUTSIDE_OPERATOR = ['**/gateway/**', '!**/gateway/shared/**', '!**/gateway/process/**', '**/standalone/**', '**/test/**']
const OPERATOR_RULE = 'operator/ imports of the gateway only gateway/shared/ and gateway/process/, and nothing of standalone/ or test/'
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
  { at: 'gateway/', deny: OUTSIDE_GATEWAY, why: GATEWAY_RULE },
  { at: 'gateway/app.ts', deny: [...OUTSIDE_GATEWAY, '**/main.ts'], packages: ['express'], why: GATEWAY_RULE },
  {
    at: 'gateway/errors.ts',
    deny: [
      ...OUTSIDE_GATEWAY,
      ...COMPOSITION,
      ...LAYERS.slice(0, -1)
        .flat()
        .map((folder) => `./${folder}/**`),
    ],
    why: 'gateway/errors.ts is below every layer but that of shared/ and process/',
  },
  { at: 'gateway/routes/', deny: [...OUTSIDE_GATEWAY, ...COMPOSITION], packages: ['express'], why: LAYER_RULE },
  { at: 'gateway/http/', deny: deniedTo('http'), packages: ['express'], why: LAYER_RULE },
  ...['auth', 'limits', 'projection', 'dialects'].map((folder) => ({ at: `gateway/${folder}/`, deny: deniedTo(folder), why: LAYER_RULE })),
  { at: 'gateway/upstream/', deny: deniedTo('upstream'), packages: ['undici'], why: LAYER_RULE },
  { at: 'gateway/shared/', deny: ['../**'], why: SHARED_RULE },
  { at: 'gateway/process/', deny: ['../**'], why: PROCESS_RULE },
  { at: 'gateway/process/redis.ts', deny: ['../**'], packages: ['ioredis'], why: PROCESS_RULE },
  { at: 'operator/', deny: OUTSIDE_OPERATOR, why: OPERATOR_RULE },
  {
    at: 'operator/api/',
    deny: ['../**', '!../kube/port.ts', '!../../gateway/shared/**', '!../../gateway/process/**'],
    why: 'operator/api/ holds schemas: it imports only object types and gateway/shared/',
  },
  { at: 'operator/api/generated-files.ts', deny: OUTSIDE_OPERATOR, why: OPERATOR_RULE },
  {
    at: 'operator/kube/',
    deny: [...OUTSIDE_OPERATOR, '../api/**'],
    packages: ['@kubernetes/client-node', 'undici'],
    why: "operator/kube/ is a client for any kind: it does not know Headgate's own kinds",
  },
  ...['gather', 'apply'].map((name) => ({
    at: `operator/*/${name}.ts`,
    deny: [...OUTSIDE_OPERATOR, '../kube/**', '!../kube/port.ts', '!../kube/resources.ts'],
    why: 'gather and apply reach the cluster only through kube/port.ts',
  })),
  ...['next-step', 'key-state'].map((name) => ({
    at: `operator/*/${name}.ts`,
    deny: [
      ...IO.map((io) => `node:${io}`),
      './{gather,apply,kind}.ts',
      '../**',
      '!../api/**',
      '!../loop/{level,reconciler}.ts',
      '!../kube/{port,resources}.ts',
      '!../../gateway/shared/**',
    ],
    why: 'the next step is a pure function of the observed objects; its file imports only api/, object types and gateway/shared/',
  })),
  {
    at: 'cli/',
    deny: ['**/gateway/**', '!**/gateway/shared/**', '**/operator/**', '!**/operator/api/**', '**/standalone/**', '**/test/**'],
    why: 'cli/ imports only operator/api/ and gateway/shared/: it works on manifests, with the rights of its user',
  },
  {
    at: 'standalone/',
    deny: ['**/test/**', '**/kube/transport.ts', '**/kube/reflector.ts'],
    why: 'standalone/ never imports the Kubernetes client',
  },
]

function fence(zone: Zone, extra: readonly string[] = []): unknown {
  const allowed = new Set([...(zone.packages ?? []), ...extra])
  const packages = FENCED_PACKAGES.filter((name) => !allowed.has(name))
  return [
    'error',
    {
      paths: [{ name: 'node:process', importNames: ['env'], message: 'config.ts files alone read the environment' }],
      patterns: [
        { group: zone.deny, message: zone.why },
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

const config = {
  plugins: ['typescript', 'import', 'unicorn', 'oxc', 'node', 'promise', 'vitest'],
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
    { files: ['**/config.ts', 'gateway/process/env.ts'], rules: { 'node/no-process-env': 'off' } },
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
