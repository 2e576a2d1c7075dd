# Partitioned targets: rows find their leaves in snapshot and stream, at any depth, whatever the order of a leaf's columns is.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed");

$source->sql('create database shop',
	'create table shop.sale (id int not null, region varchar(10) not null, day date not null, amount decimal(10,2), code int, unique (code), primary key (region, day, id))',
	'create table shop.traced (id int primary key, v int)',
	'create table shop.narrow (id int primary key, v int)', 'insert into shop.narrow values (1, 1)',
	'create table shop.alien (id int primary key, v int)', 'insert into shop.alien values (1, 1)');
$source->sql(map { sprintf("insert into shop.sale values (%d, '%s', '2024-%02d-01', %d.5, %d)", $_, (qw(north south east))[ $_ % 3 ], 1 + $_ % 6, $_, $_) } 1 .. 300);
$source->sql(map { "insert into shop.traced values ($_, $_)" } 1 .. 20);
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create schema shop',
	# by list, then by range; one leaf with its columns in another order and a column that was dropped
	'create table shop.sale (id int not null, region text not null, day date not null, amount numeric(10,2), code int, seen int default 5, primary key (region, day, id)) partition by list (region)',
	q{create table shop.sale_north partition of shop.sale for values in ('north') partition by range (day)},
	q{create table shop.sale_north_1 partition of shop.sale_north for values from ('2024-01-01') to ('2024-04-01')},
	'create table shop.sale_north_2 (seen int default 6, gone int, amount numeric(10,2), code int, day date not null, region text not null, id int not null, primary key (region, day, id), check (code <> 13))',
	'alter table shop.sale_north_2 drop column gone',
	q{alter table shop.sale_north attach partition shop.sale_north_2 for values from ('2024-04-01') to ('2025-01-01')},
	'create table shop.sale_rest partition of shop.sale default',
	'create unique index on shop.sale_north_2 (code)',
	'create table shop.traced (id int primary key, v int) partition by hash (id)',
	(map { "create table shop.traced_$_ partition of shop.traced for values with (modulus 2, remainder $_)" } 0, 1),
	'create table shop.trace (id int, v int)',
	'create function shop.note() returns trigger language plpgsql as $$ begin insert into shop.trace values (new.id, new.v); return new; end $$',
	'create trigger note after update on shop.traced for each row execute function shop.note()',
	'alter table shop.traced enable always trigger note', 'alter table shop.traced_0 enable always trigger note', 'alter table shop.traced_1 enable always trigger note',
	'create table shop.narrow (id int primary key, v int) partition by range (id)',
	'create table shop.narrow_1 partition of shop.narrow for values from (0) to (100)',
	'create role other',
	'create table shop.alien (id int primary key, v int) partition by range (id)',
	'create table shop.alien_1 partition of shop.alien for values from (0) to (100)',
	'alter table shop.alien_1 owner to other'));

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 20}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->table_status($_, 'state'), 'streaming', "$_ streams") or diag($pipeline->describe) for qw(sale traced narrow);
is($pipeline->table_status('alien', 'last_error'), 'partition "alien_1" belongs to another role than table "alien"', 'a leaf of another role is refused');
$pipeline->is_same('copied', qw(sale traced narrow));
is($postgres->psql("select count(*) > 0, min(seen), max(seen) from shop.sale_north_2"), 't|6|6', 'the leaf in another order has rows, with its own default');

$source->sql('update shop.sale set amount = amount + 1', 'start transaction', q{update shop.sale set region = 'west' where region = 'east' and id < 100},
	q{update shop.sale set day = '2024-06-02' where region = 'north' and day = '2024-01-01' and id < 150}, q{delete from shop.sale where id % 7 = 0}, 'commit',
	# unique codes that wander within one leaf
	q{update shop.sale set code = -code where region = 'north' and id in (3, 9)}, q{update shop.sale set code = code + 10000 order by code desc});
$pipeline->wait_for_catchup;
$pipeline->is_same('streamed', 'sale');
is($pipeline->table_status('sale', "tier || ' ' || collapsed"), 'lean true', 'in the lean tier');
unlike($postgres->log_text, qr/come again one by one/, 'no batch had to be taken apart');
is($postgres->psql("select count(distinct tableoid::regclass) from shop.sale"), '3', 'rows are in all leaves');

# random changes of few keys
srand($seed);
for my $round (1 .. 40)
{
	my @statements = ('start transaction');
	for (1 .. 1 + int(rand(20)))
	{
		my ($id, $region, $day) = (int(rand(8)) + 1000, (qw(north west))[ rand 2 ], sprintf('2024-%02d-01', 1 + int(rand(6))));
		push @statements, rand() < 0.5 ? "replace into shop.sale values ($id, '$region', '$day', " . int(rand(100)) . ', ' . (50000 + int(rand(1e6))) . ')'
		  : rand() < 0.5 ? "delete from shop.sale where id = $id and region = '$region'" : "update ignore shop.sale set day = '$day' where id = $id and region = '$region'";
	}
	$source->sql(@statements, 'commit');
}
$pipeline->wait_for_catchup;
$pipeline->is_mirrored('random changes', 'sale');

$source->sql('start transaction', (map { "update shop.traced set v = v + 1 where id = $_" } 1, 2, 1), 'commit');
$pipeline->wait_for_catchup;
is($postgres->psql('select id, v from shop.trace order by id, v'), "1|2\n1|3\n2|3", 'row triggers see every change');
is($pipeline->table_status('traced', "tier || ' ' || collapsed"), 'executor false', 'row by row');
$pipeline->is_same('equal', 'traced');

# a row without a leaf, and one that a leaf's constraint refuses
$source->sql('insert into shop.narrow values (2, 2), (100, 100)', q{insert into shop.sale values (5000, 'north', '2024-05-05', 1, 13)});
$pipeline->wait_for_table_state($_, 'stopped') for qw(narrow sale);
is($pipeline->table_status('narrow', 'last_error_sqlstate'), '23514', 'no leaf: SQLSTATE');
like($pipeline->table_status('narrow', 'last_error'), qr/no partition of relation "narrow" found for row/, 'no leaf: message');
is($pipeline->table_status('narrow', "coalesce(last_error_detail, '')"), '', 'without the row in it');
is($postgres->psql('select count(*) from shop.narrow'), '1', 'its transaction was not applied by half');
is($pipeline->table_status('sale', 'last_error_sqlstate'), '23514', "a leaf's own constraint");

done_testing();
