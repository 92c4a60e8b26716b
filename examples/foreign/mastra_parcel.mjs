// Mastra: a desk asks a shipper, who is another agent, through a tool. Mastra makes the spans itself.
//
//     npm install @mastra/core @mastra/observability @mastra/otel-exporter @ai-sdk/openai zod @opentelemetry/exporter-trace-otlp-proto
//     OPENAI_API_KEY=... node mastra_parcel.mjs

import { createOpenAI } from '@ai-sdk/openai';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { Observability } from '@mastra/observability';
import { OtelExporter } from '@mastra/otel-exporter';
import { z } from 'zod';

const endpoint = process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? 'http://localhost:4318/v1/traces';
const exporter = new OtelExporter({ provider: { custom: { endpoint, protocol: 'http/protobuf' } } });
const observability = new Observability({ configs: { default: { serviceName: 'mastra', exporters: [exporter] } } });
const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat(process.env.OPENAI_MODEL ?? 'gpt-5-mini');
const tariff = { Lisbon: 8.3, Porto: 8.1 };

const postage = createTool({
  id: 'postage',
  description: 'Look up what a parcel costs.',
  inputSchema: z.object({ city: z.string(), kilograms: z.number() }),
  execute: async ({ city, kilograms }) => {
    if (!(city in tariff)) throw new Error(`no tariff for '${city}'`);
    return `${(tariff[city] * kilograms).toFixed(2)} EUR`;
  },
});
const find_order = createTool({
  id: 'find_order',
  description: 'Look an order up.',
  inputSchema: z.object({ order: z.string() }),
  execute: async ({ order }) => `${order}: 3 kg, to Lisbon`,
});
const shipper = new Agent({
  id: 'shipper',
  name: 'shipper',
  instructions: 'You are the shipper. Look the price up and say it in one sentence.',
  model,
  tools: { postage },
});
const ask_shipper = createTool({
  id: 'ask_shipper',
  description: 'Ask the shipper, who knows the tariff.',
  inputSchema: z.object({ question: z.string() }),
  execute: async ({ question }, context) => (await shipper.generate(question, { tracingContext: context?.tracingContext })).text,
});
const desk = new Agent({
  id: 'desk',
  name: 'desk',
  instructions: 'You are the desk. Look the order up, then let the shipper name the price.',
  model,
  tools: { find_order, ask_shipper },
});

const mastra = new Mastra({ agents: { desk, shipper }, observability });
console.log((await mastra.getAgent('desk').generate('What does it cost to send order A-17?')).text);
await mastra.shutdown();
