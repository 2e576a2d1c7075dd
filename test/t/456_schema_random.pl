# cells: pg15 pg18
# Random statements on tables, in transactions with savepoints that are rolled back, with kill -9 of the server between: the definitions that a
# receiver of the records has at the end are those of the catalogs, and every row came in the shape that it had been told.

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $seed = $ENV{CDC_SEED} // time();
srand($seed);
note("seed $seed; CDC_SEED=$seed repeats it");
my $rounds = $ENV{CDC_TEST_ROUNDS} // 20;
$rounds = 20 if $rounds < 20;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*}', options => '{"format": "json"}')->setup;
$postgres->psql("create schema shop; create schema other; create type public.mood as enum ('m0'); create type public.pair as (a int);
	create table shop.root (id int, k int, primary key (id, k)) partition by list (k); create table shop.parent (id int primary key)");
$export->start->wait_for_state('streaming');
# what is there already: told as soon as something is done to it
$postgres->psql('alter table shop.parent add column c0 int; create table shop.p0 partition of shop.root for values in (0); create table shop.h0 (own text) inherits (shop.parent)');

sub one_of { return $_[ int(rand(@_)) ]; }
my $number = 0;

sub type { return one_of('int', 'bigint', 'text', 'numeric(10,2)', 'timestamptz(3)', 'int[]', 'public.mood', 'public.mood[]', 'public.pair', 'jsonb', 'varchar(20)', '"char"'); }
sub table { return one_of('shop', 'shop', 'shop', 'other') . '.' . one_of('t' . int(rand(6)), 't' . int(rand(6)), 'root', 'parent', 'p' . int(rand(3)), 'h' . int(rand(2))); }
sub column { return 'c' . int(rand(6)); }

# Any statement; many of them fail, which is as good as one that is rolled back.
sub statement
{
	my ($t, $c) = (table(), column());
	return one_of(
		"create table $t (id int primary key, $c " . type() . ')',
		"create table $t as select 1 as $c, 'x'::text as d",
		"create table $t (id int generated always as identity, $c int default 3, g int generated always as ($c + 1) stored)",
		("create table shop.p" . int(rand(3)) . ' partition of shop.root for values in (' . int(rand(5)) . ')') x 3,
		("create table shop.h" . int(rand(2)) . " (id int primary key, own text) inherits (shop.parent)") x 3,
		('alter table ' . one_of('shop.root', 'shop.parent') . ' add column ' . column() . ' ' . type()) x 3,
		'alter table ' . one_of('shop.root', 'shop.parent') . ' drop column ' . column(),
		"drop table $t", "drop table $t cascade",
		("alter table $t add column $c " . type() . one_of('', ' not null', ' default null')) x 3,
		"alter table $t add column $c int not null default " . int(rand(100)),
		"alter table $t add column $c float8 default random()",
		"alter table $t drop column $c cascade", "alter table $t rename column $c to " . column(), "alter table $t rename column $c to " . column(),
		"alter table $t alter column $c type text using null", "alter table $t alter column $c set default '7'", "alter table $t alter column $c drop default",
		"alter table $t alter column $c set not null", "alter table $t alter column $c drop not null",
		"alter table $t drop constraint if exists " . ($t =~ s/.*\.//r) . '_pkey', "alter table $t add primary key (id)",
		"alter table $t replica identity " . one_of('full', 'default', 'nothing'),
		"alter table $t rename to t" . int(rand(6)), "alter table $t rename to t" . int(rand(6)),
		"alter table $t set schema " . one_of('shop', 'other'),
		"alter schema shop rename to gone; alter schema gone rename to shop",
		"alter table $t set " . one_of('unlogged', 'logged'),
		'alter table shop.root detach partition shop.p' . int(rand(3)), "alter table $t no inherit shop.parent",
		"alter type public.pair add attribute x" . ++$number . ' int cascade', "alter type public.mood rename value 'm0' to 'm0'",
		"create type other.gone as enum (); alter table $t add column $c other.gone; drop type other.gone cascade",
		("insert into $t default values", "insert into $t (id) values (1)") x 2,
		"truncate $t", "comment on table $t is 'x'", "alter table $t owner to current_user", "create index on $t ($c)",
	);
}

# One transaction: each statement in a subtransaction of its own, some of them taken back.
sub transaction
{
	my $text = 'begin; ';
	for (1 .. 2 + int(rand(12)))
	{
		my $try = 'do $do$ begin ' . join(' ', map { "execute \$q\$$_\$q\$;" } split(/; /, statement())) . ' exception when others then null; end $do$; ';
		$text .= rand() < 0.15 ? "savepoint s; ${try}rollback to s; " : $try;
	}
	return $text . (rand() < 0.1 ? 'rollback' : 'commit');
}

my (%told, @wrong);
my ($changes, $rows) = (0, 0);

sub follow
{
	my ($seen) = @_;
	my @records = $export->records;
	for my $record (@records[ $seen .. $#records ])
	{
		my $name = "$record->{schema}.$record->{table}";
		if ($record->{op} eq 'schema')
		{
			$changes++;
			delete $told{"$record->{previous}{schema}.$record->{previous}{table}"} if $record->{previous};
			delete $told{$name};
			$told{$name} = $record if $record->{change} ne 'drop';
			next;
		}
		next if $record->{op} ne 'insert';
		$rows++;
		# rows of CREATE TABLE AS come before their table is told
		my $expected = $told{$name} ? join(',', sort map { $_->{name} } @{ $told{$name}{columns} }) : '';
		my $got = join(',', sort keys %{ $record->{row} });
		push @wrong, "$name: $got instead of $expected at $record->{lsn}" if $got ne $expected && $got !~ /^c\d,d$/;
	}
	return scalar(@records);
}

my $seen = 0;
for my $round (1 .. $rounds)
{
	$postgres->try_psql(join('; ', map { transaction() } 1 .. 10));
	if ($round % 8 == 0)
	{
		$postgres->kill9;
		$postgres->start;
	}
	$export->wait_for_all;
	$seen = follow($seen);
	my $catalogs = $postgres->psql(<<'SQL');
set search_path = pg_catalog;
select n.nspname || '.' || c.relname || ': ' || coalesce(string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
	|| coalesce(' default ' || case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end, ''), ', ' order by a.attnum), '') || ' ' || c.relreplident::text
from pg_class c join pg_namespace n on n.oid = c.relnamespace
left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where n.nspname = 'shop' and c.relkind = 'r' and c.relpersistence = 'p'
group by n.nspname, c.relname, c.relreplident, c.oid order by 1
SQL
	my $received = join("\n", sort map {
		my $t = $told{$_};
		my $identity = { full => 'f', nothing => 'n', default => 'd', index => 'i' }->{ $t->{identity} };
		"$_: " . join(', ', map { "$_->{name} $_->{type}" . ($_->{nullable} ? '' : ' not null') . (defined $_->{default} ? " default $_->{default}" : '') } @{ $t->{columns} }) . " $identity";
	} keys %told);
	# without a usable identity it is told as nothing
	my @catalog = map { /^(\S+): / && $told{$1} && $told{$1}{identity} eq 'nothing' ? s/ [dn]$/ n/r : $_ } split(/\n/, $catalogs);
	next if $received eq join("\n", sort @catalog) && !@wrong;
	is($received, join("\n", sort @catalog), "round $round: the definitions that were told are those of the catalogs");
	last;
}
is_deeply(\@wrong, [], 'P20: every row has the columns that were told before it');
cmp_ok($changes, '>', 100, "P20: $changes schema changes and $rows rows in $rounds rounds: definitions that were told are those of the catalogs");

done_testing();
