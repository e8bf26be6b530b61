import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import {
  type Answer,
  answerEnvelope,
  type Envelope,
  type Question,
  questionEnvelope,
  readAnswer,
  readQuestion,
} from '../../src/coordination/quorum_messages.ts';
import { codes } from '../../src/wire/codes.ts';

test('questions and answers come back as they were', () => {
  const questions: Question[] = [
    { kind: 'grant', name: 'x', tenure: 1, ttlMs: 500 },
    { kind: 'seal', name: 'x', tenure: 1, ttlMs: 500, token: 7 },
    { kind: 'renew', name: 'x', tenure: 1, ttlMs: 500, token: 7 },
    { kind: 'release', name: 'x', tenure: 1 },
    { kind: 'learn' },
  ];
  for (const question of questions) {
    assertEquals(readQuestion(questionEnvelope(3, question)), { request: 3, question });
  }
  const answers: Answer[] = [
    { kind: 'granted', floor: 1, sealed: 2, forgotten: 3 },
    { kind: 'held', by: 'a#1', expiresInMs: 10 },
    { kind: 'refused', why: 'no', retryInMs: 0 },
    { kind: 'released' },
    { kind: 'learnt', knows: true, floor: 4 },
  ];
  for (const answer of answers) assertEquals(readAnswer(answerEnvelope(3, answer)), { request: 3, answer });
});

test('a term of a fraction of a millisecond travels as the next whole one', () => {
  for (const kind of ['grant', 'seal', 'renew'] as const) {
    const question: Question = { kind, name: 'x', tenure: 1, ttlMs: 500.25, token: 7 };
    const read = readQuestion(questionEnvelope(3, question))?.question;
    assertEquals([read?.kind, (read as { ttlMs?: number }).ttlMs], [kind, 501]);
  }
});

test('what is not well-formed is refused', () => {
  const { leaseAsk, leaseAnswer } = codes;
  const questions: Envelope[] = [
    [leaseAsk],
    [leaseAsk, -1, 4],
    [leaseAsk, 1, 9],
    [leaseAsk, 1, 'length'],
    [leaseAsk, 1, 0, '', 1, 500],
    [leaseAsk, 1, 0, 'x', 1.5, 500],
    [leaseAsk, 1, 0, 'x', 1, 0],
    [leaseAsk, 1, 1, 'x', 1, 500, 2 ** 60],
    [leaseAsk, 1, 3, 'x'.repeat(256), 1],
  ];
  for (const envelope of questions) assertEquals(readQuestion(envelope), undefined, JSON.stringify(envelope));
  const answers: Envelope[] = [
    [leaseAnswer, 1, 7],
    [leaseAnswer, 1, 0, 1, 2],
    [leaseAnswer, 1, 1, 5, 5],
    [leaseAnswer, 1, 2, 'no', -1],
    [leaseAnswer, 1, 4, 'yes', 1],
    [leaseAnswer, null, 3],
  ];
  for (const envelope of answers) assertEquals(readAnswer(envelope), undefined, JSON.stringify(envelope));
});
