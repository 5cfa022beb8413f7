/** Somebody verifies the address at the moment at which the unverified row is deleted. integration/dashboard-postgres.test.ts does it on Postgres. */
import { test } from 'vitest'
import {
  allAtOnce,
  deletedBeforeTheVerification,
  replacedBeforeTheVerification,
  verifiedBeforeTheDeletion,
} from '../../../test/support/dashboard-races.ts'
import { DashboardWorld } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'

test.each([
  ['a person who verifies right before the sweep deletes stays, with session and Account', verifiedBeforeTheDeletion],
  ['a link whose row the sweep deletes is dead, and leaves no session and no Account', deletedBeforeTheVerification],
  ['a link verifies nobody who signed up with the address meanwhile', replacedBeforeTheVerification],
  ['of twelve who verify while sweeps run, each is whole or not there', allAtOnce],
] as const)('%s', async (_, race) => {
  await using world = await DashboardWorld.open({ folder: temporaryFolder() })
  await race(world)
})
