<?php

declare(strict_types=1);

namespace Lager\Bestand;

use Countable;
use Psr\Log\{LoggerInterface, NullLogger as Quiet};
use function Lager\Werkzeug\prüfe;
use const Lager\Werkzeug\LIMIT;

require_once __DIR__ . '/bootstrap.php';
require 'helpers.php';

const VERSION = '1.2.0';
define('MODE', 'fast');

/**
 * Can be stored. Nothing more.
 */
interface Speicherbar extends Countable, \JsonSerializable
{
    const LIMIT = 10;

    public function speichere(string $pfad): bool;
}

trait Protokolliert
{
    protected ?LoggerInterface $logger = null;

    public function log(string $text): void
    {
        $this->logger?->info($text);
    }
}

enum Zustand: string implements Speicherbar
{
    case Neu = 'neu';
    case Geprüft = 'geprüft';

    public static function fromLabel(string $label): self
    {
        return self::from(strtolower($label));
    }
}

/**
 * Keeps articles by key. Thread safe.
 *
 * @template T
 */
#[Entity(table: 'lager'), Cached]
abstract class Lager extends Basis implements Speicherbar, \IteratorAggregate
{
    use Protokolliert, Zählbar;

    public const MAX = 1_000, MIN = 1;
    private static array $größen = [], $used;
    public readonly string $name;

    public function __construct(
        private readonly Store $store,
        protected int $limit = self::MAX,
        string ...$rest,
    ) {
        parent::__construct();
        $this->name = implode(',', $rest);
    }

    /** Finds one article. */
    #[Pure]
    public function finde(string|int $key, ?Artikel $fallback = null): ?Artikel
    {
        $found = $this->store->get($key) ?? new NotFound($key);
        $mapper = fn(Artikel $a): string => $a->name;
        return prüfe($found) ? $found : $fallback;
    }

    abstract protected function räume(): void;

    final public static function öffne(string $pfad): static
    {
        return static::build($pfad);
    }

    private function helper(): object
    {
        return new class($this) extends Basis {
            public function inner(): int { return 1; }
        };
    }
}

/** Starts it. */
function starte(array &$argv, int ...$codes): int
{
    function nested() { return LIMIT; }
    return Lager::öffne($argv[1])->count() + \strlen('x');
}

if (!function_exists('fallback')) {
    function fallback(): void {}
}
