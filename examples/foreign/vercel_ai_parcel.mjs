// Vercel's AI SDK: a desk asks a shipper through a tool. The SDK makes the spans itself.
//
//     npm install ai @ai-sdk/openai zod @opentelemetry/sdk-node @opentelemetry/exporter-trace-otlp-proto
//     OPENAI_API_KEY=... node vercel_ai_parcel.mjs

import { createOpenAI } from '@ai-sdk/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { generateText, stepCountIs, tool } from 'ai';
import { z } from 'zod';

const sdk = new NodeSDK({ traceExporter: new OTLPTraceExporter() });
sdk.start();
const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat(process.env.OPENAI_MODEL ?? 'gpt-5-mini');
const tariff = { Lisbon: 8.3, Porto: 8.1 };

async function ask(agent, system, tools, prompt) {
  const { text } = await generateText({
    model,
    system,
    prompt,
    tools,
    stopWhen: stepCountIs(9),
    experimental_telemetry: { isEnabled: true, functionId: agent },
  });
  return text;
}

const postage = tool({
  description: 'Look up what a parcel costs.',
  inputSchema: z.object({ city: z.string(), kilograms: z.number() }),
  execute: async ({ city, kilograms }) => {
    if (!(city in tariff)) throw new Error(`no tariff for '${city}'`);
    return `${(tariff[city] * kilograms).toFixed(2)} EUR`;
  },
});
const find_order = tool({
  description: 'Look an order up.',
  inputSchema: z.object({ order: z.string() }),
  execute: async ({ order }) => `${order}: 3 kg, to Lisbon`,
});
const ask_shipper = tool({
  description: 'Ask the shipper, who knows the tariff.',
  inputSchema: z.object({ question: z.string() }),
  execute: async ({ question }) =>
    ask('shipper', 'You are the shipper. Look the price up and say it in one sentence.', { postage }, question),
});

const desk = 'You are the desk. Look the order up, then let the shipper name the price.';
console.log(await ask('desk', desk, { find_order, ask_shipper }, 'What does it cost to send order A-17?'));
await sdk.shutdown();
