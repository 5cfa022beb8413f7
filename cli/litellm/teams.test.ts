import { describe, expect, test } from 'vitest'
import { sha256 } from '../../test/support/hash-keys.ts'
import { convert } from './convert.ts'
import { readKeys, UnreadableFile } from './read-keys.ts'
import { reportOf } from './report.ts'
import { convertTeams, readTeams } from './teams.ts'

const OPTIONS = { namespace: 'apps', subtractSpend: false }
const team = (change: object = {}) => ({ team_id: 'blue', team_alias: 'Team Blue', models: ['llama', 'qwen-*'], ...change })
const of = (...teams: object[]) => convertTeams(readTeams(JSON.stringify(teams)), OPTIONS)

describe('a team of LiteLLM', () => {
  test('becomes an Account that admits the namespace of the keys, on a Plan with the models of the team', () => {
    const { plans, accounts, refused } = of(
      team({ rpm_limit: 60, tpm_limit: 1_000, max_budget: 12.5, budget_duration: '30d', blocked: true }),
    )
    expect(refused).toEqual([])
    expect(plans).toMatchObject([{ kind: 'Plan', spec: { models: ['llama', 'qwen-*'] } }])
    expect(plans[0]?.metadata.name).toMatch(/^litellm-[0-9a-f]{8}$/)
    expect(accounts[0]?.account).toEqual({
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'Account',
      metadata: {
        name: 'team-blue',
        labels: { 'import.headgate.dev/from': 'litellm' },
        annotations: { 'import.headgate.dev/team-id': 'blue' },
      },
      spec: {
        displayName: 'Team Blue',
        planRef: { name: plans[0]?.metadata.name },
        state: 'Suspended',
        namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'apps' } },
        limits: { requestsPerMinute: 60, tokensPerMinute: 1_000 },
        budgets: [{ name: 'month', amount: '12.50', unit: 'Currency', window: 'Month' }],
      },
    })
    expect(accounts[0]?.warnings.join()).toContain('blocked in LiteLLM')
  })

  test('shares its Plan with every team that has the same models, in any order', () => {
    const { plans, accounts } = of(
      team(),
      team({ team_id: 'red', team_alias: 'Red', models: ['qwen-*', 'llama'] }),
      team({ team_id: 'x', team_alias: null, models: ['other'] }),
    )
    expect(plans).toHaveLength(2)
    expect(
      accounts.map(({ account }) => account.spec.planRef.name).map((name) => plans.findIndex((plan) => plan.metadata.name === name)),
    ).toEqual([0, 0, 1])
    expect(accounts.map(({ account }) => account.metadata.name)).toEqual(['team-blue', 'red', 'x'])
  })

  test.each([[[]], [['all-proxy-models']]])('with the models %j may call every model, and the report warns of it', (models) => {
    const { plans, accounts } = of(team({ models }))
    expect(plans).toMatchObject([{ metadata: { name: 'litellm-all-models' }, spec: { models: ['*'] } }])
    expect(accounts[0]?.warnings.join()).toContain('EVERY MODEL')
  })

  test('with the alias of another one gets a name of its own, whatever the order of the file', () => {
    const names = (...teams: object[]) => of(...teams).accounts.map(({ account }) => account.metadata.name)
    const [a, b] = [team(), team({ team_id: 'red' })]
    expect(names(a, b)).toEqual([...names(b, a)].reverse())
    expect(new Set(names(a, b)).size).toBe(2)
  })

  test('with a limit that cannot be read is not written, and neither are its keys without models of their own', () => {
    const teams = of(team({ rpm_limit: 'many' }))
    expect([teams.accounts, teams.refused[0]?.reason]).toEqual([[], 'rpm_limit is not a number that a limit can have'])
  })

  test.each<[string, RegExp]>([
    ['', /holds no teams; ask LiteLLM for GET \/team\/list/],
    ['[]', /holds no teams/],
    ['{"error":{"message":"no"}}', /holds no teams/],
    ['not JSON', /is not JSON/],
    ['[{"team_alias":"x"}]', /entry 1 of the teams: team_id: not of the form/],
  ])('in a file with %j ends the import', (text, why) => {
    expect(() => readTeams(text)).toThrow(UnreadableFile)
    expect(() => readTeams(text)).toThrow(why)
  })
})

describe('a key of a team with an Account', () => {
  const teams = of(team())
  const converted = (change: object) => {
    const key = { token: sha256('sk-a'), key_alias: 'bot', models: [], team_id: 'blue', ...change }
    return convert(readKeys(JSON.stringify([key])), { ...OPTIONS, teams, teamModels: new Map(), nowMs: 0 })
  }

  test('belongs to the Account, whose Plan restricts its models', () => {
    const { written } = converted({})
    expect(written[0]?.manifest.spec).toMatchObject({ accountRef: { name: 'team-blue' }, models: ['*'] })
    expect([written[0]?.warnings, written[0]?.notes]).toEqual([[], []])
    expect(converted({ models: ['all-team-models'] }).written[0]?.manifest.spec.models).toEqual(['*'])
    expect(converted({ models: ['llama'] }).written[0]?.manifest.spec.models).toEqual(['llama'])
  })

  test('of another team has none, and the report says how to get one', () => {
    expect(converted({ team_id: 'red' }).refused[0]?.remedy).toContain('--teams FILE')
    const { written } = converted({ team_id: 'red', models: ['llama'] })
    expect([written[0]?.manifest.spec.accountRef, written[0]?.warnings]).toEqual([undefined, [expect.stringContaining('add --teams FILE')]])
  })

  test('is in the report with its Account, after the teams', () => {
    const report = reportOf(converted({}), 'keys.yaml', teams)
    expect(report).toContain('1 team read: 1 Account and 1 Plan written, 0 not written.')
    expect(report).toMatch(/Account team-blue \(team "blue"\)\n {2}imported: Plan litellm-[0-9a-f]{8}\n/)
    expect(report).toContain('imported: Account team-blue, every model')
  })
})
