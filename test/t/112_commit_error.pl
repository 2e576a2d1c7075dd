# An error that comes at COMMIT, from a deferred trigger of a target table, belongs to no table in particular: the pipeline says
# so and does not go round in silence. When the cause is mended it goes on, with nothing lost.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } qw(checked free));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

$postgres->psql(<<'SQL');
create table public.late_error (errcode text);
create function shop.check_late() returns trigger language plpgsql as $$
begin
	if new.v = 13 then
		raise exception using message = 'thirteen is refused', errcode = (select errcode from public.late_error);
	end if;
	return null;
end $$;
create constraint trigger late after insert on shop.checked deferrable initially deferred for each row execute function shop.check_late();
alter table shop.checked enable always trigger late;
SQL

my $id = 10;
for my $case ([ 'P0001', 'raised by plpgsql' ], [ '23514', 'a violated constraint' ])
{
	my ($errcode, $what) = @$case;
	$postgres->psql("truncate public.late_error; insert into public.late_error values ('$errcode')");
	$id += 10;
	$source->sql("insert into shop.free values ($id, 1)");
	$pipeline->wait_for_catchup;
	my $dbh = $source->connect;
	$dbh->begin_work;
	$dbh->do("insert into shop.free values ($id + 1, 1)");
	$dbh->do("insert into shop.checked values ($id + 1, 13)");
	$dbh->commit;
	ok(poll_until(sub { return $pipeline->state eq 'failed'; }, 60), "$what: the pipeline fails") or diag($pipeline->describe);
	like($pipeline->status('last_error_detail'), qr/It was thrown in PL\/pgSQL function shop\.check_late\(\)/, "$what: with the function that threw it");
	is($pipeline->status('last_error_sqlstate'), $errcode, "$what: with its SQLSTATE");
	is($postgres->psql("select count(*) from shop.free where id > $id"), '0', "$what: nothing of the transaction is there");
	is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state = 'streaming'}), '2', "$what: no table is stopped");

	$postgres->psql('alter table shop.checked disable trigger late');
	$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same("$what: mended, it goes on and loses nothing");
	$postgres->psql('alter table shop.checked enable always trigger late');
}

done_testing();
