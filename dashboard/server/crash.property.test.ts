/** The dashboard is killed at every write of a person's story: to the database, to the API server and to the mail server. */
import { expect, test } from 'vitest'
import type { DeathAt } from '../../test/support/crashing-database.ts'
import { DashboardJourney, FIRST, SECOND } from '../../test/support/dashboard-journey.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

test.each(['before', 'after'] as const)(
  'a kill %s any write of the story leaves one Account, no half-done person, and a way on',
  async (when) => {
    const whole = await toldWith()
    expect(whole.length).toBeGreaterThan(30)
    // writes of background work come in another order in each run, so a few more are tried than one run has
    for (let write = 1; write <= whole.length + 5; write += 1) await toldWith({ write, when })
  },
)

async function toldWith(death?: DeathAt): Promise<readonly string[]> {
  const what = JSON.stringify(death ?? {})
  await using journey = new DashboardJourney(temporaryFolder(), death)
  try {
    await journey.begin()
    await journey.signUp()
    await journey.verify()
    const [account, ...others] = await journey.accounts()
    expect([account?.spec.owner, account?.spec.state, others]).toEqual([{ email: FIRST, emailVerification: 'Verified' }, 'Active', []])
    await journey.signOutAndIn()
    await journey.changeEmail()
    expect((await journey.accounts()).map(({ spec }) => spec.owner?.email)).toEqual([SECOND])
    await journey.delete()
    await journey.outboxIsEmpty()
    const left = await journey.accounts()
    expect(left.map(({ metadata, spec }) => [metadata.name, spec.state, spec.owner?.email])).toEqual([
      [account?.metadata.name, 'Suspended', SECOND],
    ])
    expect(journey.world.mails.of(SECOND, 'account-deleted').length).toBeGreaterThan(0)
    expect(await journey.rows()).toEqual({ user: 0, account: 0, session: 0, headgateMember: 0, headgateOutbox: 0 })
    return journey.writes
  } catch (error) {
    throw new Error(`${what} after ${journey.writes.at(-1) ?? 'no death'}`, { cause: error })
  }
}
