/** An answer of a model server that cannot be passed on: it is damaged, or it broke off. It ends its call and not the process. */
export class UnreadableAnswer extends Error {}
