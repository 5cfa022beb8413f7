/** Loaded into programs that have a gateway (`--import`): checks the streams of Messages that they write. */
import { checkAnswers } from './checked-streams.ts'

checkAnswers()
